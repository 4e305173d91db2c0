/**
 * Where changes wait that the service does not have yet: IndexedDB, one record for each tab and canvas.
 *
 * A tab holds a lock as long as it lives, so a record without a lock was left by a tab that was closed or crashed. The next tab that opens
 * the canvas takes it over. A reloaded tab finds its own record by an id in the storage of its session.
 */
import type { Kept, Storage } from "./types.ts";

const STORE = "queues";
const TAB = "canvas.tab";
const lockOf = (tab: string) => `canvas-queue-${tab}`;

const outcome = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error ?? new Error("the storage failed")));
  });

let database: Promise<IDBDatabase> | undefined;

const forget = () => void (database = undefined);

function opened(): Promise<IDBDatabase> {
  if (!database) {
    const request = indexedDB.open("canvas-console", 1);
    request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
    database = outcome(request);
    // Signing out deletes what the browser stored, and ends the connection.
    database.then((fresh) => fresh.addEventListener("close", forget), forget);
  }
  return database;
}

async function records(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  return (await opened()).transaction(STORE, mode, { durability: "strict" }).objectStore(STORE);
}

let ownTab: Promise<string> | undefined;

/** The id of this tab. A tab that was duplicated has the id of the other one, which holds the lock, and gets its own. */
function tabId(): Promise<string> {
  return (ownTab ??= (async () => {
    const known = sessionStorage.getItem(TAB);
    if (known && (await hold(known))) return known;
    const fresh = crypto.randomUUID();
    sessionStorage.setItem(TAB, fresh);
    await hold(fresh);
    return fresh;
  })());
}

/** Whether this page holds the lock of `tab`, from now on until it ends. */
function hold(tab: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(lockOf(tab), { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock ? new Promise<never>(() => {}) : undefined;
    });
  });
}

const allKeys = async () => (await outcome((await records("readonly")).getAllKeys())) as string[][];

let keysAhead: Promise<string[][]> | undefined;
/** How long the answer that was asked for ahead is new enough, in milliseconds. */
const NEW_ENOUGH = 5000;

/** Asks what the storage has before it is known who is signed in: the first canvas waits for it. */
export function prepare(): void {
  void tabId();
  keysAhead = allKeys();
  keysAhead.catch(() => undefined);
  setTimeout(() => (keysAhead = undefined), NEW_ENOUGH);
}

export function browserStorage(account: string, canvas: string): Storage {
  const keyOf = (tab: string) => [account, canvas, tab];
  return {
    async load() {
      const tab = await tabId();
      const keys = await (keysAhead ?? allKeys());
      keysAhead = undefined;
      const tabs = keys.filter(([by, of]) => by === account && of === canvas).map(([, , tab = ""]) => tab);
      for (const other of tabs.filter((one) => one !== tab)) {
        await navigator.locks.request(lockOf(other), { ifAvailable: true }, async (lock) => {
          if (lock) await takeOver(keyOf(other), keyOf(tab));
        });
      }
      return (tabs.length > 0 && (await read(keyOf(tab)))) || { batches: [], aliases: {}, conflicts: [] };
    },
    async save(kept) {
      const tab = await tabId();
      const isEmpty = kept.batches.length + kept.conflicts.length === 0;
      const store = await records("readwrite");
      const done = isEmpty ? outcome(store.delete(keyOf(tab))) : outcome(store.put(kept, keyOf(tab)));
      // Of a page that ends, the browser aborts what was not committed.
      store.transaction.commit();
      await done;
    },
  };
}

/** How many changes are kept here, of all accounts: ending the session deletes them. A conflict is a change that waits for a person. */
export async function countKept(): Promise<number> {
  const all = (await outcome((await records("readonly")).getAll())) as Kept[];
  return all.reduce((sum, { batches, conflicts }) => sum + new Set(batches.map(({ step }) => step)).size + conflicts.length, 0);
}

const read = async (key: string[]): Promise<Kept | undefined> => outcome((await records("readonly")).get(key));

async function takeOver(from: string[], to: string[]): Promise<void> {
  const store = await records("readwrite");
  const [left, own] = (await Promise.all([outcome(store.get(from)), outcome(store.get(to))])) as (Kept | undefined)[];
  if (!left) return;
  const merged: Kept = {
    batches: [...(own?.batches ?? []), ...left.batches],
    aliases: { ...left.aliases, ...own?.aliases },
    conflicts: [...(own?.conflicts ?? []), ...left.conflicts],
  };
  await Promise.all([outcome(store.put(merged, to)), outcome(store.delete(from))]);
}
