import { createContext, useContext } from "react";
import type { Board } from "./board.ts";

export const BoardContext = createContext<Board | null>(null);

export function useBoard(): Board {
  const board = useContext(BoardContext);
  if (!board) throw new Error("used outside of a board");
  return board;
}

/** How many pixels of the screen a unit of the plane takes, rounded up to a power of two. */
export const DetailContext = createContext(1);
