import assert from "node:assert/strict";
import { test } from "node:test";
import { exchange, opened } from "../sync/clients.ts";
import type { Node } from "../sync/graph.ts";
import { Board } from "./board.ts";
import { FAVORITE, markOfKey, marksOf, marksSaid, rate, toggleMark } from "./marks.ts";

const tagged = (...tags: string[]) => ({ metadata: { tags } }) as unknown as Node;

test("marks are reserved words among the tags", () => {
  assert.deepEqual(marksOf(tagged("mood", "favorite", "rating:3", "label:blue")), { isFavorite: true, rating: 3, label: "blue" });
  assert.deepEqual(marksOf(tagged("rating:0", "rating:6", "label:pink", "favorites")), { isFavorite: false, rating: 0, label: undefined });
  assert.deepEqual([marksSaid(tagged("favorite", "rating:1", "label:red")), marksSaid(tagged("mood"))], ["a favorite, 1 star, red label", undefined]);
});

test("selected images become favorites, and are none any more if all of them were; texts are left alone", async () => {
  const [service, ana] = await opened("ana");
  const image = (title: string, tags: string[]) => ana.create({ ...ana.note(title), type: "image", asset: `asset:u:${title}`, metadata: { ...(tags.length > 0 && { tags }) } } as never);
  const ids = [image("One", ["mood"]), image("Two", ["favorite"]), ana.create(ana.note("Note"))];
  const board = new Board(ana.engine);
  const tags = () => ids.map((id) => ana.graph.nodes.get(id)?.metadata.tags);
  board.select(ids);
  toggleMark(board, FAVORITE);
  assert.deepEqual(tags(), [["mood", "favorite"], ["favorite"], undefined]);
  toggleMark(board, FAVORITE);
  assert.deepEqual(tags(), [["mood"], undefined, undefined]);
  board.undo();
  assert.deepEqual(tags(), [["mood", "favorite"], ["favorite"], undefined]);
  await exchange(service, ana);
});

test("an image with 24 tags becomes no favorite, and that is said; one with 23 does", async () => {
  const [, ana] = await opened("ana");
  const image = (count: number) => ana.create({ ...ana.note("One"), type: "image", asset: "asset:u:1", metadata: { tags: Array.from({ length: count }, (_, index) => `t${index}`) } } as never);
  const ids = [image(23), image(24)];
  const board = new Board(ana.engine);
  const said: string[] = [];
  board.onNotice((text) => said.push(text));
  board.select(ids);
  toggleMark(board, FAVORITE);
  assert.deepEqual([ids.map((id) => ana.graph.nodes.get(id)?.metadata.tags?.length), said], [[24, 24], ["This image has too many tags."]]);
});

test("keys give stars and labels to all selected images; the later of a kind is there, and a label is taken back by its own key", async () => {
  const [service, ana] = await opened("ana");
  const image = (title: string, tags: string[]) => ana.create({ ...ana.note(title), type: "image", asset: `asset:u:${title}`, metadata: { tags } } as never);
  const ids = [image("One", ["mood", "rating:2"]), image("Two", ["label:red"])];
  const board = new Board(ana.engine);
  const tags = () => ids.map((id) => ana.graph.nodes.get(id)?.metadata.tags);
  const press = (key: string) => markOfKey(key)?.(board, board.selected);
  board.select(ids);
  press("4");
  assert.deepEqual(tags(), [["mood", "rating:4"], ["label:red", "rating:4"]]);
  press("4");
  assert.deepEqual(tags(), [["mood", "rating:4"], ["label:red", "rating:4"]]);
  press("9");
  assert.deepEqual(tags(), [["mood", "rating:4", "label:blue"], ["rating:4", "label:blue"]]);
  press("9");
  press("0");
  assert.deepEqual(tags(), [["mood"], undefined]);
  board.undo();
  assert.deepEqual(tags(), [["mood", "rating:4"], ["rating:4"]]);
  rate(board, 5, [ana.graph.nodes.get(ids[0] as string) as Node]);
  assert.deepEqual(tags(), [["mood", "rating:5"], ["rating:4"]]);
  assert.equal(markOfKey("A"), undefined);
  await exchange(service, ana);
});
