/** Tools and buttons over the title of a selected Section fade while nobody is on them. */
import { useEffect } from "react";
import type { Camera } from "./camera.ts";

export function useFading(camera: Camera, frame: HTMLElement, selection: ReadonlySet<string>): void {
  useEffect(() => {
    const covering = () => [...(frame.closest("[data-stage]")?.querySelectorAll<HTMLElement>("[data-fades]") ?? [])];
    const look = () => {
      // Nothing is measured while the view moves.
      if (frame.hasAttribute("data-moving")) return;
      const titles = [...frame.querySelectorAll(".react-flow__node-section.selected [data-title]")].map((title) => title.getBoundingClientRect());
      for (const element of covering()) {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const isOver = titles.some((title) => title.left < right && left < title.right && title.top < bottom && top < title.bottom);
        element.toggleAttribute("data-faded", isOver);
      }
    };
    look();
    const stop = camera.subscribe(look);
    return () => {
      stop();
      for (const element of covering()) element.removeAttribute("data-faded");
    };
  }, [camera, frame, selection]);
}
