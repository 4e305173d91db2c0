import { useMutation, useQuery } from "@tanstack/react-query";
import { type SubmitEvent, useEffect, useState } from "react";
import { Redirect } from "wouter";
import { credentialOf, linkOf, returnPath } from "../address.ts";
import { api, type Credential, type SignInProvider } from "../api.ts";
import { Problem } from "../errors.ts";
import { hasExpired } from "../prefetch.ts";
import { useProviders, useSessionQuery, useSigningIn } from "../session.ts";
import { problemIn } from "../sign-in-problem.ts";
import { useTitle } from "../ui/hooks.ts";
import { Avatar, Button, Mark, Notice, Waiting } from "../ui/parts.tsx";
import { Illustration } from "./illustration.tsx";
import styles from "./signin.module.css";

/** Where a sign-in with a provider goes on. The page keeps it itself, so that the service redirects to no address that a request names. */
const NEXT = "canvas.next";

/** Leads to where a sign-in with a provider began. */
export function SignedInWithProvider() {
  const [next] = useState(() => sessionStorage.getItem(NEXT) ?? "/");
  useEffect(() => sessionStorage.removeItem(NEXT), []);
  return <Redirect to={returnPath(`?${new URLSearchParams({ next })}`, location.origin)} replace />;
}

export function SignIn() {
  useTitle("Sign in");
  const [link, setLink] = useState(() => linkOf(location.hash));
  const [isAgain] = useState(hasExpired);
  const session = useSessionQuery();
  const { signIn } = useSigningIn();
  const attempt = useMutation({ mutationFn: signIn, meta: { isOfSession: false } });
  const providers = useProviders();
  // That a token was refused says nothing about a link.
  const { variables } = attempt;
  const linkError = variables && "link" in variables && variables.link === link ? attempt.error : null;

  useEffect(() => {
    /** Takes the link out of the address, so that it does not stay in the history of the browser. */
    const take = () => {
      const link = linkOf(location.hash);
      if (link === undefined) return;
      history.replaceState(history.state, "", location.pathname + location.search);
      setLink(link);
    };
    take();
    // A link that is pasted into the address bar while this page is open changes the fragment alone.
    addEventListener("hashchange", take);
    return () => removeEventListener("hashchange", take);
  }, []);

  const leave = () => {
    setLink(undefined);
    attempt.reset();
  };

  if (session.data && (link === undefined || attempt.isSuccess)) {
    return <Redirect to={returnPath(location.search, location.origin)} replace />;
  }

  return (
    <div className={styles.page}>
      <main className={styles.side}>
        <div className={styles.brand}>
          <Mark size={32} />
          <span>Canvas Service</span>
        </div>
        <div className={styles.card}>
          {isAgain && (
            <p className={styles.ended} role="status">
              Your session has ended. What you changed is kept here and is sent when you are back.
            </p>
          )}
          {!isSecureContext ? (
            <Insecure />
          ) : link !== undefined ? (
            <Confirm link={link} signIn={attempt.mutate} isBusy={attempt.isPending} error={linkError} leave={leave} />
          ) : providers.isPending ? (
            <Waiting label="Loading" />
          ) : (
            <Ways providers={providers.data ?? []} attempt={{ signIn: attempt.mutate, isBusy: attempt.isPending, error: attempt.error }} preview={setLink} />
          )}
        </div>
        <p className={styles.foot}>
          New here? <code>canvas-gateway admin session link</code> makes a sign-in link. <a href="/docs">API documentation</a>
        </p>
      </main>
      <Illustration />
    </div>
  );
}

interface Attempt {
  signIn: (credential: Credential) => void;
  isBusy: boolean;
  error: Error | null;
}

/** A button for each provider. Links and tokens are folded behind them, and are all there is without a provider. */
function Ways({ providers, attempt, preview }: { providers: SignInProvider[]; attempt: Attempt; preview: (link: string) => void }) {
  const problem = problemIn(location.search);
  const form = <PasteForm {...attempt} preview={preview} isOnly={providers.length === 0} />;
  const keep = () => {
    const next = returnPath(location.search, location.origin);
    // After a failure the address has lost where the first attempt came from.
    if (next !== "/" || problem === undefined) sessionStorage.setItem(NEXT, next);
  };
  return (
    <>
      <h1>Sign in</h1>
      {problem !== undefined && (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      {providers.map(({ id, name }) => (
        <a key={id} className={styles.provider} href={`/console/oidc/${id}/start`} onClick={keep}>
          Continue with {name}
        </a>
      ))}
      {providers.length === 0 ? (
        form
      ) : (
        <details className={styles.other} open={attempt.error !== null}>
          <summary>Use a sign-in link or a token</summary>
          {form}
        </details>
      )}
    </>
  );
}

/** Shows whom the link signs in. Only the button redeems it. */
function Confirm({ link, signIn, isBusy, error, leave }: Attempt & { link: string; leave: () => void }) {
  const preview = useQuery({ queryKey: ["link", link], queryFn: () => api.preview(link), staleTime: Infinity, gcTime: 0, meta: { isOfSession: false } });
  const failure = error ?? preview.error;
  const account = preview.data?.account;
  if (failure) {
    const isUsed = failure instanceof Problem && failure.status === 401;
    return (
      <>
        <h1>{isUsed ? "This link no longer works" : "Signing in failed"}</h1>
        {isUsed ? (
          <p className={styles.lead}>A sign-in link works once and for a few minutes. Ask for a new one, or use a token.</p>
        ) : (
          <Notice error={failure} />
        )}
        {!isUsed && (
          <Button look="primary" className={styles.wide} isBusy={isBusy} onClick={() => (error ? signIn({ link }) : void preview.refetch())}>
            Try again
          </Button>
        )}
        <Button look={isUsed ? "primary" : "quiet"} className={styles.wide} autoFocus={isUsed} onClick={leave}>
          Sign in another way
        </Button>
      </>
    );
  }
  if (!account) return <p role="status">Reading the link…</p>;
  const name = account.displayName;
  return (
    <>
      <h1>Sign in</h1>
      <div className={styles.person}>
        <Avatar name={name} size={44} />
        <div>
          <p className={styles.display} dir="auto">
            {name}
          </p>
          {name !== account.email && <p className={styles.email}>{account.email}</p>}
        </div>
      </div>
      <Button look="primary" className={styles.wide} autoFocus isBusy={isBusy} onClick={() => signIn({ link })}>
        {isBusy ? "Signing in…" : "Continue"}
      </Button>
      <Button look="quiet" className={styles.wide} onClick={leave}>
        Sign in another way
      </Button>
    </>
  );
}

function PasteForm({ signIn, isBusy, error, preview, isOnly }: Attempt & { preview: (link: string) => void; isOnly: boolean }) {
  const [text, setText] = useState("");
  const [isWrong, setIsWrong] = useState(false);

  function submit(event: SubmitEvent) {
    event.preventDefault();
    const credential = credentialOf(text);
    setIsWrong(!credential);
    if (!credential) return;
    if ("link" in credential) preview(credential.link);
    else signIn(credential);
  }

  return (
    <form onSubmit={submit} noValidate>
      <p className={styles.lead}>Open a sign-in link, or paste one here. A token works as well, with its own scopes.</p>
      <label className={styles.label} htmlFor="credential">
        Sign-in link or token
      </label>
      <input
        id="credential"
        className={styles.input}
        type="password"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        autoFocus={isOnly}
        placeholder="cba_…"
        value={text}
        aria-invalid={isWrong}
        aria-describedby={isWrong ? "wrong" : undefined}
        onChange={(event) => {
          setText(event.target.value);
          setIsWrong(false);
        }}
      />
      {isWrong && (
        <p id="wrong" className={styles.wrong} role="alert">
          This is neither a sign-in link nor a token. Tokens begin with <code>cba_</code>.
        </p>
      )}
      {error && !isWrong && <Notice error={error} />}
      <Button look={isOnly ? "primary" : "plain"} type="submit" className={styles.wide} isBusy={isBusy}>
        {isBusy ? "Signing in…" : "Sign in"}
      </Button>
    </form>
  );
}

function Insecure() {
  return (
    <>
      <h1>HTTPS is needed</h1>
      <p className={styles.lead}>
        This page was opened over plain HTTP, where a browser cannot keep a session safe. Open it over HTTPS, or on the machine of the
        service at <code>http://localhost</code>.
      </p>
    </>
  );
}
