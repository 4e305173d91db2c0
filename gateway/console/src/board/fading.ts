/** Tools and buttons over the title of a selected Section fade while nobody is on them. */
import { useEffect } from "react";
import type { Camera } from "./camera.ts";

export function useFading(camera: Camera, frame: HTMLElement, selection: ReadonlySet<string>): void {
  useEffect(() => {
    const covering = [...(frame.closest("[data-stage]")?.querySelectorAll("[data-fades]") ?? [])];
    const look = () => {
      // Nothing is measured while the view moves.
      if (frame.hasAttribute("data-moving")) return;
      const [id] = selection.size === 1 ? selection : [];
      const title = id === undefined ? undefined : frame.querySelector(`.react-flow__node[data-id="${CSS.escape(id)}"] [data-title]`)?.getBoundingClientRect();
      for (const element of covering) {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const isOver = title !== undefined && title.left < right && left < title.right && title.top < bottom && top < title.bottom;
        element.toggleAttribute("data-faded", isOver);
      }
    };
    look();
    const stop = camera.subscribe(look);
    return () => {
      stop();
      for (const element of covering) element.removeAttribute("data-faded");
    };
  }, [camera, frame, selection]);
}
