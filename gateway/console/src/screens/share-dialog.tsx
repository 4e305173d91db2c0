/** With whom a canvas is shared, and for its owner the means to change that. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useRef, useState } from "react";
import type { CanvasSummary } from "../api.ts";
import { removedOf } from "../assets.ts";
import { firstPages, pageOf } from "../library/listing.ts";
import { Problem } from "../errors.ts";
import { type CanvasName, type Member, type MemberRole, person } from "../person.ts";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { Field, isBeyond, problemAt } from "../ui/field.tsx";
import { Avatar, Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import styles from "./share.module.css";

/** What the dialog needs to know of a canvas. */
export type SharedCanvas = Pick<CanvasSummary, "id" | "ownerUid" | "title" | "accessRole">;

export const membersKey = ({ ownerUid, id }: CanvasName) => ["members", ownerUid, id];

const ROLES: Record<MemberRole, string> = { viewer: "Viewer", editor: "Editor" };

export function ShareDialog({ canvas, close }: { canvas: SharedCanvas; close: () => void }) {
  const { session, account } = useSession();
  const isOwner = canvas.accessRole === "owner";
  return (
    <Modal title={`Access to “${canvas.title || "Untitled"}”`} close={close}>
      {!isOwner ? (
        <p className={styles.lead}>
          It belongs to the account <code>{canvas.ownerUid}</code>, who alone decides with whom it is shared. You are {canvas.accessRole === "editor" ? "an editor" : "a viewer"}:
          you may {canvas.accessRole === "editor" ? "read and change it" : "read it"}.
        </p>
      ) : session.kind === "narrow" ? (
        <p className={styles.lead}>
          It belongs to you, <strong>{account.email}</strong>. You are signed in with the token <strong dir="auto">{session.label}</strong>, and a token must not give access to a
          canvas. Sign in by a link to see and change its members.
        </p>
      ) : (
        <Members canvas={canvas} />
      )}
    </Modal>
  );
}

function Members({ canvas }: { canvas: SharedCanvas }) {
  const { account } = useSession();
  const { data, error, refetch } = useQuery({ queryKey: membersKey(canvas), queryFn: ({ signal }) => person.members(canvas, signal) });
  return (
    <div className={styles.members}>
      <AddMember canvas={canvas} members={data ?? []} />
      {!data && (error ? <Failure title="The members cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the members" />)}
      {data && (
        <ul className={styles.list} aria-label="Members">
          <li>
            <Avatar name={account.displayName} />
            <span className={styles.email}>
              {account.email} <span className={styles.you}>you</span>
            </span>
            <span className={styles.role}>Owner</span>
          </li>
          {data.map((member) => (
            <MemberRow key={member.email} canvas={canvas} member={member} />
          ))}
        </ul>
      )}
      <Removed canvas={canvas} />
      <p className={styles.lead}>Agents of a member have the access of that member. A role that you take away ends at once, for open pages and for agents.</p>
    </div>
  );
}

/** How many pages of the images of a canvas are looked through for what was removed from their files. */
const MOST_PAGES = 10;

/** What members do not get of the images of the canvas. */
function Removed({ canvas: { ownerUid, id } }: { canvas: SharedCanvas }) {
  const { session } = useSession();
  const handle = `canvas:${ownerUid}:${id}` as const;
  const { data } = useQuery({
    queryKey: ["removed", handle],
    queryFn: ({ signal }) => firstPages(MOST_PAGES, (places) => pageOf(handle, { kind: "all", sort: "new" }, places, signal)),
    enabled: session.scopes.includes("asset:read"),
  });
  const found = data?.items.map(({ asset }) => asset) ?? [];
  const removed = removedOf(found);
  if (removed === undefined) return null;
  return (
    <p className={styles.lead}>
      Members get the images of this canvas without private metadata{data?.isAll === false && `, of the newest ${found.length}`}: {removed}.{found.some(({ original }) => original) && " You alone can download the files as they were."}
    </p>
  );
}

/** A change of members was refused because there were too many in a minute. */
const waitOf = (error: unknown): string | undefined =>
  error instanceof Problem && error.status === 429 ? `Members can be changed 20 times a minute. Try again in ${error.retryAfter ?? 60} seconds.` : undefined;

/** Changes of the members of a canvas, which show in the list before it is read again. */
function useMembers(canvas: CanvasName) {
  const queries = useQueryClient();
  const key = membersKey(canvas);
  return {
    put: (member: Member) =>
      queries.setQueryData<Member[]>(key, (members = []) => [...members.filter(({ email }) => email !== member.email), member].toSorted((one, other) => one.email.localeCompare(other.email))),
    drop: (email: string) => queries.setQueryData<Member[]>(key, (members = []) => members.filter((member) => member.email !== email)),
    reread: () => queries.invalidateQueries({ queryKey: key }),
  };
}

function AddMember({ canvas, members }: { canvas: SharedCanvas; members: Member[] }) {
  const list = useMembers(canvas);
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<MemberRole>("viewer");
  const adding = useMutation({
    mutationFn: async (member: Member) => {
      // A path segment such as ".." leads to another route.
      if (!member.email.includes("@")) throw new Problem(400, "", undefined, undefined, { fields: [{ field: "email", message: "must be an email address" }] });
      return person.setMember(canvas, member);
    },
    onSuccess: ({ member }) => {
      list.put(member);
      setEmail("");
      void list.reread();
    },
  });
  const wanted = email.trim();
  const isMember = members.some((member) => member.email.toLowerCase() === wanted.toLowerCase());

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!adding.isPending) adding.mutate({ email: wanted, role });
  }

  const problem = problemAt(adding.error, "email", "The email") ?? waitOf(adding.error);
  return (
    <form className={styles.add} onSubmit={submit} noValidate>
      <Field label="Share with" problem={problem}>
        {(control) => (
          <input
            {...control}
            type="email"
            data-first
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder="name@example.com"
            value={email}
            onChange={({ target }) => {
              setEmail(target.value);
              if (adding.error) adding.reset();
            }}
          />
        )}
      </Field>
      <Field label="Role">
        {(control) => (
          <select {...control} value={role} onChange={({ target }) => setRole(target.value as MemberRole)}>
            {Object.entries(ROLES).map(([key, label]) => (
              <option key={key} value={key}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Button look="primary" type="submit" isBusy={adding.isPending}>
        {isMember ? "Change" : "Share"}
      </Button>
      <p className="unseen" role="status">
        {adding.data && `Shared with ${adding.data.member.email} as ${adding.data.member.role}`}
      </p>
      {problem === undefined && isBeyond(adding.error, ["email"]) && <Notice error={adding.error} />}
    </form>
  );
}

function MemberRow({ canvas, member }: { canvas: SharedCanvas; member: Member }) {
  const list = useMembers(canvas);
  const { email, role } = member;
  const row = useRef<HTMLLIElement>(null);
  const change = useMutation({
    mutationFn: (role: MemberRole) => person.setMember(canvas, { email, role }),
    onMutate: (role) => list.put({ email, role }),
    onSettled: list.reread,
  });
  const removal = useMutation({
    mutationFn: () => person.removeMember(canvas, email),
    onSuccess: () => {
      // The row goes with its button.
      if (row.current?.contains(document.activeElement)) row.current.closest("dialog")?.querySelector<HTMLElement>("[data-first]")?.focus();
      list.drop(email);
    },
    onError: list.reread,
  });
  const error = change.error ?? removal.error;
  return (
    <li ref={row}>
      <Avatar name={email} />
      <span className={styles.email}>{email}</span>
      <select aria-label={`Role of ${email}`} value={role} aria-disabled={change.isPending || undefined} onChange={({ target }) => change.isPending || change.mutate(target.value as MemberRole)}>
        {Object.entries(ROLES).map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
      <Button look="quiet" aria-label={`Remove ${email}`} title="Remove" isBusy={removal.isPending} onClick={() => removal.mutate()}>
        <Icon name="close" size={16} />
      </Button>
      {error && <div className={styles.problem}>{waitOf(error) === undefined ? <Notice error={error} /> : <p role="alert">{waitOf(error)}</p>}</div>}
    </li>
  );
}
