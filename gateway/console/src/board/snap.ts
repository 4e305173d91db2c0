/** Whether what is dragged snaps to others. Kept in this browser. */
const KEY = "canvas.snap";

export const isSnapping = (): boolean => localStorage.getItem(KEY) !== "off";

export function toggleSnapping(): boolean {
  const isOn = !isSnapping();
  if (isOn) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, "off");
  return isOn;
}
