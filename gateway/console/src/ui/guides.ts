/** Where the guides are, which the service serves for the version that runs. */
export const GUIDES = {
  all: "/docs/guides",
  console: "/docs/guides/console",
  webhooks: "/docs/guides/webhooks",
  news: "/docs/guides/changelog",
  /** Each code of the contract has a heading in it. */
  errors: "/docs/guides/reference/errors",
} as const;
