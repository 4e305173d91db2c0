/** The names of models by the provider's own ids, as far as the session may know them. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api } from "../api.ts";
import { useSession } from "../session.ts";

export function useModelNames(): ReadonlyMap<string, string> {
  const { scopes } = useSession().session;
  const { data } = useQuery({ queryKey: ["models", "all"], queryFn: ({ signal }) => api.allModels(signal), staleTime: 60_000, enabled: scopes.includes("image:generate") });
  // One model of several connections has the same name.
  return useMemo(() => new Map(data?.map(({ modelId, name }) => [modelId, name])), [data]);
}
