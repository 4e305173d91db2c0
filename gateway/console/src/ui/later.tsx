/** Parts of the application that are fetched when they are first shown, and what is shown in place of a part that failed. */
import { Component, type ComponentType, type ReactNode } from "react";
import { Problem } from "../errors.ts";
import { onReached } from "../reached.ts";
import { Modal } from "./dialog.tsx";
import { useLoaded } from "./hooks.ts";
import { Failure } from "./parts.tsx";

type Load<Props> = () => Promise<{ default: ComponentType<Props> }>;

/** What fetches each part. */
export const loads = new Set<() => Promise<unknown>>();

/** Fetches all parts, one after the other, so that they are there without the network. What fails is fetched again when it is shown. */
export async function fetchParts(): Promise<void> {
  for (const load of loads) await load().catch(() => {});
}

/**
 * A component that is fetched when it is first shown, and with the other parts unless it is not `shared` by all accounts. Unlike one of
 * `lazy`, it is fetched again after a failure.
 */
export function later<Props extends object>(load: Load<Props>, waiting: ReactNode = null, shared = true): ComponentType<Props> {
  let part: ComponentType<Props> | undefined;
  const get = async () => (part ??= (await load()).default);
  if (shared) loads.add(get);
  return function Later(props) {
    const Part = useLoaded(get, part);
    return Part ? <Part {...props} /> : waiting;
  };
}

/** A dialog that is fetched when it is first opened. Its failure is a dialog, too, and leaves the page as it is. */
export function laterDialog<Props extends { close: () => void }>(title: string, load: Load<Props>): ComponentType<Props> {
  const Content = later(load);
  return function LaterDialog(props) {
    const around = (failure: ReactNode) => (
      <Modal title={title} close={props.close}>
        {failure}
      </Modal>
    );
    return (
      <Boundary around={around}>
        <Content {...props} />
      </Boundary>
    );
  };
}

interface BoundaryProps {
  children: ReactNode;
  /** What is shown around the failure. */
  around?: (failure: ReactNode) => ReactNode;
  /** Where the page is. A failure stays there. */
  place?: string;
}

/** Shows a failure in place of what failed, instead of nothing. */
export class Boundary extends Component<BoundaryProps, { failure?: { error: unknown } | undefined }> {
  override state: { failure?: { error: unknown } | undefined } = {};

  static getDerivedStateFromError(error: unknown) {
    return { failure: { error } };
  }

  #stop = () => {};

  /** A part that could not be fetched is fetched when the service is there again. */
  override componentDidMount() {
    this.#stop = onReached(() => this.state.failure?.error instanceof Problem && this.#showAgain());
  }

  override componentWillUnmount() {
    this.#stop();
  }

  override componentDidUpdate({ place }: BoundaryProps) {
    if (place !== this.props.place) this.#showAgain();
  }

  #showAgain = () => this.setState({ failure: undefined });

  override render() {
    const { children, around = (failure) => failure } = this.props;
    const { failure } = this.state;
    if (!failure) return children;
    // A part that could not be fetched leaves the page as it was. After any other error, only a new page is sound.
    const retry = failure.error instanceof Problem ? this.#showAgain : () => location.reload();
    return around(<Failure title="This could not be shown" error={failure.error} retry={retry} />);
  }
}
