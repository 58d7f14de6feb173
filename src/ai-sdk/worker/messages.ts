/** The first message to the process of a package. */
export interface StartMessage {
  /** The name that is imported, such as `@ai-sdk/google-vertex/edge`. */
  readonly specifier: string;
  /** URL of the file or folder beside which the package is installed. */
  readonly from: string;
  /** The export that makes the provider; null: the only one whose name begins with `create`. */
  readonly factory: string | null;
  /** The settings of the provider, with its secrets. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** `ping` asks whether the event loop of the process runs. */
export type ToWorker = { readonly start: StartMessage } | 'ping';

/** `failed`: the package cannot be used, for this reason. */
export type FromWorker = 'ready' | 'pong' | { readonly failed: string };

/** The pipes of the process: calls come to it over one, its requests to the vendor leave over the other. */
export const CALLS_FD = 3;
export const FETCHES_FD = 4;
