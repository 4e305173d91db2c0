import { Component, lazy, type ReactNode, Suspense } from "react";
import { Redirect, Route, Switch, useLocation, useSearch } from "wouter";
import { signInPath } from "./address.ts";
import { Canvas } from "./screens/canvas.tsx";
import { Canvases } from "./screens/canvases.tsx";
import { Missing } from "./screens/missing.tsx";
import { SignIn } from "./screens/signin.tsx";
import { SessionContext, useSessionQuery } from "./session.ts";
import { Failure, Waiting } from "./ui/parts.tsx";

const Elements = lazy(() => import("./screens/elements.tsx"));
const Recipes = lazy(() => import("./screens/recipes.tsx"));
const Settings = lazy(async () => ({ default: (await import("./screens/settings/settings.tsx")).Settings }));
const Assets = lazy(async () => ({ default: (await import("./screens/assets.tsx")).Assets }));
const Runs = lazy(async () => ({ default: (await import("./screens/runs.tsx")).Runs }));

export function App() {
  return (
    <Boundary>
      <Switch>
        <Route path="/signin" component={SignIn} />
        <Route>
          <SignedIn>
            <Suspense fallback={<Waiting label="Loading" />}>
              <Switch>
                <Route path="/" component={Canvases} />
                <Route path="/c/:owner/:id">
                  {({ owner, id }) => <Canvas key={`${owner}/${id}`} handle={`canvas:${owner}:${id}`} />}
                </Route>
                <Route path="/recipes" component={Recipes} />
                <Route path="/elements" component={Elements} />
                <Route path="/settings/*?">{(params) => <Settings path={params["*"] ?? ""} />}</Route>
                <Route path="/runs" component={Runs} />
                <Route path="/assets" component={Assets} />
                <Route component={Missing} />
              </Switch>
            </Suspense>
          </SignedIn>
        </Route>
      </Switch>
    </Boundary>
  );
}

/** Shows a page in place of one that failed, instead of nothing. */
class Boundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (!("error" in this.state)) return this.props.children;
    return <Failure title="This page failed" error={this.state.error} retry={() => location.reload()} />;
  }
}

/** Shows its children to a person who is signed in, and leads others to the sign-in page and back. */
function SignedIn({ children }: { children: ReactNode }) {
  const session = useSessionQuery();
  const [path] = useLocation();
  const search = useSearch();
  if (session.data) return <SessionContext value={session.data}>{children}</SessionContext>;
  if (session.data === null) return <Redirect to={signInPath(search ? `${path}?${search}` : path)} replace />;
  if (session.isError) return <Failure title="The service does not answer" error={session.error} retry={session.refetch} />;
  return <Waiting label="Loading" />;
}
