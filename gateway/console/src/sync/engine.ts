/**
 * Keeps a canvas in this browser equal to the service's, while a person changes it without waiting.
 *
 * **Guarantee.** A change is never lost and never takes effect twice. A person's text is never overwritten unseen, and undo changes
 * nothing that somebody else did.
 *
 * **Mechanism.** What is shown is `base`, the service's graph at a revision, with the changes on top that the service does not have yet.
 * Each gesture is a batch with an idempotency key. One batch at a time is on its way; it is stored with its key before it is sent, and sent
 * again unchanged until there is an answer, also by the next page. After every answer, what changed is read, and all changes that wait are
 * judged again on the new base. A batch that was refused as stale is built again, with a new key.
 *
 * **Ids.** The service assigns ids. What this page made keeps the id it was made with, and ids are translated where requests are sent and
 * answers are read. So nothing on the screen is replaced when an answer arrives.
 */
import { Problem } from "../errors.ts";
import { backoff } from "../stream.ts";
import { Aliases } from "./aliases.ts";
import { type Change, MOST_OPERATIONS, applied, applyTo, bothOf, difference, groupsOf, inverseOf, joinedUpdates, judge, keepingConnected, newest, nodeOf, operationsOf } from "./change.ts";
import { Draft, type Graph } from "./graph.ts";
import { History, type Step } from "./history.ts";
import { Notifier } from "./notifier.ts";
import type { Answer, Batch, Canvas, Environment, Kept, News, OpenConflict, Request, Snapshot, State } from "./types.ts";

/** Conflicts in a row before sending pauses. */
const MOST_CONFLICTS = 5;

export class Engine {
  #env: Environment;
  #base: { graph: Graph; revision: string } | undefined;
  /** Changes that the service has, and `base` has not. */
  #accepted: Change[] = [];
  #batches: Batch[] = [];
  #conflicts: OpenConflict[] = [];
  #aliases = new Aliases();
  #ownRevisions = new Set<string>();
  #history = new History();
  #news: News | undefined;
  #state: State = "opening";
  #problem: Problem | undefined;
  #failures = 0;
  #collisions = 0;
  /** The newest revision that is known to exist, until it was read. */
  #announced: string | undefined;
  /** Whether changes are read although no new revision is known. */
  #isForced = false;
  /** The base was read while it was not known whether a batch had taken effect, so it may contain that batch. */
  #isUnsure = false;
  /** Whether what an earlier page left is known. Until then nothing is read, sent or stored: it would be overwritten. */
  #isOpen = false;
  #isRunning = false;
  #canChange: boolean;
  /** The answer that the role does not permit changes. Until the page knows the present role, none is sent. */
  #withdrawn: Problem | undefined;
  #closed = new AbortController();
  #pause = new AbortController();
  #shown: Graph | undefined;
  #snapshot: Snapshot | undefined;
  #listeners = new Set<() => void>();
  #notices = new Notifier<[text: string]>();
  #refreshing: (() => void)[] = [];

  constructor(env: Environment) {
    this.#env = env;
    this.#canChange = env.canChange;
  }

  // What is shown

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Calls the listener with each sentence that a person should read: what was dropped, and why. */
  readonly onNotice = this.#notices.listen;

  readonly getSnapshot = (): Snapshot => {
    const graph = this.#graph();
    return (this.#snapshot ??= {
      state: this.#state,
      graph,
      revision: this.#base?.revision,
      waiting: new Set(this.#batches.map(({ step }) => step)).size,
      problem: this.#problem ?? (graph && this.#withdrawn),
      conflicts: graph ? this.#conflicts.map((conflict) => newest(conflict, graph)) : this.#conflicts,
      undo: this.#history.undo.at(-1)?.label,
      redo: this.#history.redo.at(-1)?.label,
      news: this.#news,
    });
  };

  /** The id at the service of what has `id` here. */
  readonly real = this.#aliases.real;
  /** The id here of what has `id` at the service. */
  readonly local = this.#aliases.local;

  /** What the service does not have yet, in order. */
  readonly unsent = (): readonly Batch[] => this.#batches;

  #graph(): Graph | undefined {
    if (!this.#shown && this.#base) {
      this.#shown = applied(this.#base.graph, [...this.#accepted, ...this.#batches.flatMap(({ changes }) => changes)]);
    }
    return this.#shown;
  }

  #show(state: State): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#emit();
  }

  #emit(): void {
    this.#snapshot = undefined;
    for (const listener of this.#listeners) listener();
  }

  // What a person does

  /** Makes changes, and returns the id of their step. `merge` joins them with the step before into one, if that has the same value. */
  perform(label: string, changes: Change[], options: { merge?: string; undoToo?: Change[]; undone?: () => void } = {}): string | undefined {
    const step: Step = { id: this.#env.newId(), label, changes: [], merge: options.merge, undone: options.undone };
    const done = this.#make(step, changes, "rebase");
    if (done.length === 0 && !options.undoToo) {
      // It may have made a conflict.
      this.#changed();
      return undefined;
    }
    step.changes = [...inverseOf(done), ...(options.undoToo ?? [])];
    const id = this.#history.add(step);
    this.#changed();
    return id;
  }

  /** Undoes the last step, or the one with this id unless it was undone. */
  undo(id = this.#history.undo.at(-1)?.id): void {
    this.#step(this.#history.undo, this.#history.redo, id);
  }

  redo(): void {
    this.#step(this.#history.redo, this.#history.undo, this.#history.redo.at(-1)?.id);
  }

  /** Undoes a step that came to nothing, or what it did to these nodes, and forgets it. */
  takeBack(id: string, nodes?: ReadonlySet<string>): void {
    const part = nodes && this.#history.takePart(id, nodes);
    const step = nodes ? part && { ...part, changes: this.#asNow(part.changes) } : this.#history.take(id);
    if (step) this.#make({ ...step, id: this.#env.newId() }, step.changes, "undo");
    this.#changed();
  }

  /** Undoes what others did, as far as it is still so. */
  undoNews(news: News): void {
    if (!this.#isPermitted()) return;
    const step: Step = { id: this.#env.newId(), label: "Undo a change of others", changes: [], merge: undefined };
    step.changes = inverseOf(this.#make(step, news.undo, "undo"));
    if (step.changes.length > 0) this.#history.add(step);
    if (this.#news === news) this.#news = undefined;
    this.#changed();
  }

  /**
   * Ends a conflict with this person's text, with that of the other, or with both of them joined. `conflict` is as it was shown: what
   * somebody has written since makes another conflict.
   */
  resolve(conflict: OpenConflict, choice: "mine" | "theirs" | "both"): void {
    if (choice !== "theirs" && !this.#isPermitted()) return;
    this.#conflicts = this.#conflicts.filter(({ key }) => key !== conflict.key);
    const { on, id, field, mine, theirs } = conflict;
    const text = choice === "mine" ? mine : choice === "both" ? bothOf(conflict) : undefined;
    if (text === undefined) return this.#changed();
    const label = on === "canvas" ? "Rename the canvas" : choice === "mine" ? "Keep my text" : "Keep both texts";
    this.perform(label, [{ do: "update", on, id, set: { [field]: text }, was: { [field]: theirs } }]);
  }

  /** The same, but of nodes that are deleted as they are now. */
  #asNow(changes: Change[]): Change[] {
    return changes.map((change) => (change.do === "delete" ? { ...change, node: this.#graph()?.nodes.get(this.local(change.node.id)) ?? change.node } : change));
  }

  #step(from: Step[], to: Step[], id: string | undefined): void {
    const step = from.find((one) => one.id === id);
    if (!step || !this.#isPermitted()) return;
    from.splice(from.indexOf(step), 1);
    const back: Step = { id: this.#env.newId(), label: step.label, changes: [], merge: undefined };
    step.undone?.();
    back.changes = inverseOf(this.#make(back, step.undone ? this.#asNow(step.changes) : step.changes, "undo"));
    if (back.changes.length > 0) to.push(back);
    this.#changed();
  }

  /** Whether the canvas may be changed. If not, a notice says so, and what was to be changed stays as it is. */
  #isPermitted(): boolean {
    const isPermitted = this.#canChange && !this.#withdrawn && this.#state !== "gone";
    if (!isPermitted) this.#notices.notify("You can no longer change this canvas.");
    return isPermitted;
  }

  /** Judges changes on what is shown, and queues what is left of them. What was begun before the role was withdrawn is kept, too. */
  #make(step: Step, changes: Change[], mode: "rebase" | "undo"): Change[] {
    const graph = this.#graph();
    if (!graph) return [];
    if (!this.#canChange) {
      this.#notices.notify(`${step.label} was not done: you may not change this canvas.`);
      return [];
    }
    const draft = new Draft(graph);
    const left = this.#judged(draft, changes, mode);
    this.#shown = draft.graph;
    const last = this.#batches.at(-1);
    const joined = last && !last.sent && step.merge !== undefined && step.merge === last.merge && joinedUpdates([...last.changes, ...left]);
    if (joined) last.changes = [joined];
    else for (const part of groupsOf(left, MOST_OPERATIONS)) this.#batches.push({ key: this.#env.newId(), label: step.label, step: step.id, changes: part, ...(step.merge !== undefined && { merge: step.merge }) });
    // While changes of others are read, the state says nothing of those that are made meanwhile.
    if (left.length > 0 && this.#state === "saved") this.#state = "saving";
    return left;
  }

  #judged(draft: Draft, changes: Change[], mode: "rebase" | "undo"): Change[] {
    const notices = new Set<string>();
    const known = changes.map((one) => this.#aliases.change(one));
    const left = (mode === "undo" ? keepingConnected(draft, known) : known).flatMap((one) => {
      const { change, conflicts = [], dropped } = judge(draft, one, mode);
      if (change) applyTo(draft, change);
      for (const conflict of conflicts) {
        // The newest text of mine against the newest of the other.
        const others = this.#conflicts.filter(({ on, id, field }) => on !== conflict.on || id !== conflict.id || field !== conflict.field);
        this.#conflicts = [...others, { ...conflict, key: this.#env.newId() }];
      }
      if (dropped !== undefined) notices.add(dropped);
      return change ?? [];
    });
    if (notices.size > 3) this.#notices.notify(`${notices.size} changes were dropped: what they changed was changed by others.`);
    else for (const text of notices) this.#notices.notify(text);
    return left;
  }

  #changed(): void {
    void this.#save();
    this.#emit();
    this.#run();
  }

  /** Forgets what the service does not have. */
  discard(): void {
    this.#batches = [];
    this.#changed();
  }

  // What the service does

  /** Begins: what an earlier page left is sent first, then the canvas is read. */
  async open(): Promise<void> {
    const kept = await this.#env.storage.load().catch((): Kept => ({ batches: [], aliases: {}, conflicts: [] }));
    this.#batches = [...kept.batches, ...this.#batches];
    this.#conflicts = [...kept.conflicts, ...this.#conflicts];
    const isNamed = this.#batches.length + this.#conflicts.length > 0;
    this.#isOpen = true;
    if (isNamed) for (const [real, ours] of Object.entries(kept.aliases)) this.#aliases.set(ours, real);
    this.#emit();
    this.#run();
  }

  /** The canvas has this revision now. */
  follow(revision: string): void {
    this.#announced = revision;
    this.#run();
  }

  /** The canvas has this title now. A list of changes does not contain it. */
  retitled(title: string): void {
    if (!this.#base || this.#base.graph.title === title) return;
    this.#base = { ...this.#base, graph: { ...this.#base.graph, title } };
    this.#rebase();
    this.#emit();
  }

  /** Whether changes may be made and sent from now on. Without, the canvas is followed all the same, and what waits is kept. */
  permit(canChange: boolean): void {
    this.#canChange = canChange;
    this.#withdrawn = undefined;
    this.#run();
  }

  /** Tries at once what waits or has stopped. */
  resume(): void {
    this.#failures = 0;
    this.#withdrawn = undefined;
    if (this.#isStopped()) this.#state = "opening";
    this.#isForced = true;
    this.#pause.abort();
    this.#run();
  }

  /** Reads what has changed, and resolves when it is shown, or when the canvas cannot be read any more. */
  refresh(): Promise<void> {
    if (this.#isStopped() || this.#closed.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#refreshing.push(resolve);
      this.#isForced = true;
      this.#run();
    });
  }

  close(): void {
    this.#closed.abort();
    this.#pause.abort();
  }

  #isStopped(): boolean {
    return this.#state === "signed-out" || this.#state === "gone";
  }

  #run(): void {
    if (!this.#isOpen || this.#isRunning || this.#isStopped() || this.#closed.signal.aborted) return;
    this.#isRunning = true;
    void this.#loop();
  }

  /** One task at a time, until there is none. */
  async #loop(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const task = this.#next();
      this.#show(this.#stateNow());
      if (!task) {
        // A listener may have made a change.
        if (this.#next()) continue;
        break;
      }
      try {
        await task();
        this.#failures = 0;
        this.#problem = undefined;
      } catch (error) {
        // Any other error comes from an answer that cannot be read: the request may have taken effect.
        const problem = error instanceof Problem ? error : new Problem(0, "The answer of the service cannot be read.");
        this.#problem = problem;
        const isFinal = !problem.isTemporary && problem.status !== 409;
        if (isFinal) {
          // A listener may resume.
          this.#isRunning = false;
          this.#show(problem.status === 401 ? "signed-out" : "gone");
          for (const resolve of this.#refreshing.splice(0)) resolve();
          return;
        }
        this.#failures += 1;
        this.#show(this.#stateNow());
        this.#pause = new AbortController();
        const after = problem.retryAfter === undefined ? backoff(this.#failures - 1) : problem.retryAfter * 1000;
        await this.#env.wait(after, this.#pause.signal);
      }
    }
    this.#isRunning = false;
  }

  #stateNow(): State {
    if (this.#base && this.#withdrawn) return "read-only";
    if (this.#failures > 0) return "waiting";
    if (!this.#base) return "opening";
    return this.#accepted.length > 0 || (this.#canChange && this.#batches.length > 0) ? "saving" : "saved";
  }

  #next(): (() => Promise<void>) | undefined {
    const [batch] = this.#canChange && !this.#withdrawn ? this.#batches : [];
    const base = this.#base;
    // Whether it took effect is not known, and nothing else can be judged before. Should there be no answer, the canvas is shown all the same.
    if (batch?.sent && (base || this.#failures === 0)) return () => this.#send(batch, batch.sent as Request);
    if (!base) return () => this.#read();
    const isBehind = this.#announced !== undefined && this.#announced !== base.revision;
    if (this.#accepted.length > 0 || this.#isForced || isBehind) return () => this.#pull(base);
    if (batch) return () => this.#send(batch, this.#requestOf(batch, base.revision));
    return undefined;
  }

  #requestOf(batch: Batch, baseRevision: string): Request {
    const operations = batch.changes.flatMap((change) => operationsOf(change, this.real));
    // Findings ask agents to look again; a person sees the canvas. With a deletion, force would also end the wait of nodes for their work.
    const isForced = batch.force || !batch.changes.some((change) => change.do === "delete");
    return { baseRevision, idempotencyKey: batch.key, operations, ...(isForced && { force: true }) };
  }

  async #send(batch: Batch, request: Request): Promise<void> {
    const isRepeated = batch.sent !== undefined;
    batch.sent = request;
    await this.#save();
    let answer: Answer;
    try {
      answer = await this.#env.transport.apply(request);
    } catch (error) {
      if (!(error instanceof Problem) || ![400, 403, 409, 413, 415, 422].includes(error.status)) throw error;
      if (error.status === 403) this.#withdrawn = error;
      // An earlier attempt may have taken effect: that is answered when the role is back.
      if (error.status === 403 && isRepeated) return;
      // It had no effect.
      this.#isUnsure = false;
      delete batch.sent;
      batch.key = this.#env.newId();
      if (error.status !== 403) this.#refused(batch, error);
      await this.#save();
      return;
    }
    for (const [ours, real] of Object.entries(answer.resolvedIds)) this.#aliases.set(ours, real);
    this.#batches.shift();
    for (const rest of this.#batches) if (rest.step === batch.step) rest.isRest = true;
    this.#collisions = 0;
    if (this.#base) {
      this.#accepted.push(...batch.changes);
      this.#base = { ...this.#base, graph: { ...this.#base.graph, title: answer.canvas.title } };
    }
    if (!answer.replayed) this.#ownRevisions.add(answer.canvas.revision);
    void this.#save();
    this.#emit();
  }

  #refused(batch: Batch, problem: Problem): void {
    if (problem.status === 409) {
      this.#isForced = true;
      this.#collisions += 1;
      if (this.#collisions > MOST_CONFLICTS) throw new Problem(409, "The canvas changes faster than this page can follow.");
    } else if (problem.isBlockedByFindings && !batch.force) {
      batch.force = true;
    } else {
      this.#batches = this.#batches.filter(({ step }) => step !== batch.step);
      this.#rebase();
      const step = this.#history.take(batch.step);
      // What the service has of it is undone. What it has not comes to nothing when it is judged.
      if (step && batch.isRest) this.#make({ ...step, id: this.#env.newId() }, step.changes, "undo");
      // What an earlier page did cannot be undone.
      this.#notices.notify(`${batch.label} was ${batch.isRest && !step ? "done in part" : "taken back"}: ${problem.fields[0]?.message ?? problem.message}`);
      this.#emit();
    }
  }

  async #read(): Promise<void> {
    this.#isUnsure = this.#batches[0]?.sent !== undefined;
    const canvas = await this.#env.transport.read();
    this.#base = this.#baseOf(canvas);
    this.#arrived(undefined);
  }

  async #pull(base: { graph: Graph; revision: string }): Promise<void> {
    const announced = this.#announced;
    const waiting = this.#refreshing.splice(0);
    this.#isForced = false;
    try {
      await this.#advance(base);
    } catch (error) {
      this.#isForced = true;
      this.#refreshing.unshift(...waiting);
      throw error;
    }
    this.#arrived(announced);
    for (const resolve of waiting) resolve();
  }

  /** Reads what has changed since `base`, or the whole canvas if the service no longer knows that. */
  async #advance(base: { graph: Graph; revision: string }): Promise<void> {
    const isTitleChanged = this.#batches.some(({ changes }) => changes.some((change) => change.do === "update" && change.on === "canvas"));
    const changes = isTitleChanged || this.#isUnsure ? undefined : await this.#env.transport.changes(base.revision);
    if (!changes?.complete) {
      this.#base = this.#baseOf(await this.#env.transport.read());
      return;
    }
    // The title may have been learned during the request.
    const { graph } = this.#base ?? base;
    const next = this.#aliases.patched(graph, changes);
    const nodes = [...changes.changedNodeIds, ...changes.deletedNodeIds].map(this.local);
    const connections = [...changes.changedConnectionIds, ...changes.deletedConnectionIds].map(this.local);
    const others = difference(applied(graph, this.#accepted), next, nodes, connections);
    const activity = changes.activity.filter(({ revision }) => !this.#ownRevisions.has(revision));
    if (others.length > 0 && activity.length > 0) {
      this.#news = { key: this.#env.newId(), activity, nodes: others.flatMap(nodeOf), undo: inverseOf(others) };
    }
    this.#base = { graph: next, revision: changes.revision };
  }

  /** A new base is here. `announced` is the announced revision when it was asked for. */
  #arrived(announced: string | undefined): void {
    this.#accepted = [];
    // The node of a conflict may have been named while another tab wrote it.
    this.#conflicts = this.#conflicts.map((one) => (this.local(one.id) === one.id ? one : { ...one, id: this.local(one.id) }));
    if (!this.#batches[0]?.sent) this.#isUnsure = false;
    if (this.#announced === announced) this.#announced = undefined;
    this.#rebase();
    void this.#save();
    this.#emit();
  }

  /** Judges again what waits, on the present base. */
  #rebase(): void {
    if (!this.#base) return;
    const draft = new Draft(applied(this.#base.graph, this.#accepted));
    for (const batch of this.#batches) {
      if (batch.sent) for (const change of batch.changes) applyTo(draft, change);
      else batch.changes = this.#judged(draft, batch.changes, "rebase");
    }
    this.#batches = this.#batches.filter(({ changes }) => changes.length > 0);
    this.#shown = draft.graph;
  }

  #save(): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    const kept = { batches: this.#batches, aliases: this.#aliases.kept, conflicts: this.#conflicts };
    // Without storage, changes last as long as the page.
    return this.#env.storage.save(kept).catch(() => undefined);
  }

  #baseOf(canvas: Canvas): { graph: Graph; revision: string } {
    return { graph: this.#aliases.graph(canvas), revision: canvas.revision };
  }
}
