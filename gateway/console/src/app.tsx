import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { Redirect, Route, Switch, useLocation, useSearch } from "wouter";
import { canvasOf, canvasPath, signInPath } from "./address.ts";
import { api } from "./api.ts";
import { Problem } from "./errors.ts";
import { Canvas } from "./screens/canvas.tsx";
import { Canvases } from "./screens/canvases.tsx";
import { Missing } from "./screens/missing.tsx";
import { SignIn, SignedInWithProvider } from "./screens/signin.tsx";
import { SessionContext, useSessionQuery } from "./session.ts";
import { useIsLater } from "./ui/hooks.ts";
import { Boundary, fetchParts, later } from "./ui/later.tsx";
import { Failure, Waiting } from "./ui/parts.tsx";
import { Shell } from "./ui/shell.tsx";

const LOADING = <Waiting label="Loading" />;
const Elements = later(() => import("./screens/elements.tsx"), LOADING);
const Recipes = later(() => import("./screens/recipes.tsx"), LOADING);
const Settings = later(async () => ({ default: (await import("./screens/settings/settings.tsx")).Settings }), LOADING);
const Assets = later(async () => ({ default: (await import("./screens/assets.tsx")).Assets }), LOADING);
const Admin = later(async () => ({ default: (await import("./screens/admin/admin.tsx")).Admin }), LOADING, false);
const Authorize = later(async () => ({ default: (await import("./screens/allow.ts")).Authorize }), LOADING);
const Device = later(async () => ({ default: (await import("./screens/allow.ts")).Device }), LOADING);
const Runs = later(async () => ({ default: (await import("./screens/runs.tsx")).Runs }), LOADING);

/** How long after the page is there what the others need is fetched, in milliseconds. */
const PARTS_REST = 5000;

export function App() {
  return (
    <Boundary>
      <Switch>
        <Route path="/signin" component={SignIn} />
        <Route path="/signin/done" component={SignedInWithProvider} />
        <Route>
          <SignedIn>
            <Switch>
              <Route path="/" component={Canvases} />
              <Route path="/c/:owner/:id">
                {({ owner, id }) => <Canvas key={`${owner}/${id}`} handle={`canvas:${owner}:${id}`} />}
              </Route>
              <Route path="/c/:slug">{({ slug }) => <Named key={slug} slug={slug} />}</Route>
              <Route path="/recipes" component={Recipes} />
              <Route path="/elements" component={Elements} />
              <Route path="/settings/*?">{(params) => <Settings path={params["*"] ?? ""} />}</Route>
              <Route path="/admin/*?">{(params) => <Admin path={params["*"] ?? ""} />}</Route>
              <Route path="/oauth/authorize" component={Authorize} />
              <Route path="/device" component={Device} />
              <Route path="/runs" component={Runs} />
              <Route path="/assets" component={Assets} />
              <Route component={Missing} />
            </Switch>
          </SignedIn>
        </Route>
      </Switch>
    </Boundary>
  );
}

/** Leads from the short address of a canvas to its page. */
function Named({ slug }: { slug: string }) {
  const handle = useQuery({ queryKey: ["slug", slug], queryFn: ({ signal }) => api.handleOf(slug, signal), staleTime: Number.POSITIVE_INFINITY });
  if (handle.data !== undefined) return <Redirect to={canvasPath(canvasOf(handle.data))} replace />;
  if (handle.error instanceof Problem && [400, 404].includes(handle.error.status)) return <Missing />;
  if (handle.isError) return <Failure title="The canvas cannot be loaded" error={handle.error} retry={handle.refetch} />;
  return LOADING;
}

/** Shows its children to a person who is signed in, and leads others to the sign-in page and back. */
function SignedIn({ children }: { children: ReactNode }) {
  const session = useSessionQuery();
  const [path] = useLocation();
  const search = useSearch();
  const place = search ? `${path}?${search}` : path;
  const isFetching = useIsLater(PARTS_REST) && Boolean(session.data);
  useEffect(() => {
    if (isFetching) void fetchParts();
  }, [isFetching]);
  if (session.data) {
    return (
      <SessionContext value={session.data}>
        <Boundary place={place} around={inShell}>
          {children}
        </Boundary>
      </SessionContext>
    );
  }
  if (session.data === null) return <Redirect to={signInPath(place)} replace />;
  if (session.isError) return <Failure title="The service does not answer" error={session.error} retry={session.refetch} />;
  return <Waiting label="Loading" />;
}

const inShell = (failure: ReactNode) => <Shell>{failure}</Shell>;
