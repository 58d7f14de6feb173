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

/** A line of JSON. `ping` asks whether the event loop of the process runs. */
export type ToWorker = { readonly start: StartMessage } | 'ping';

/**
 * A line of text: `ready`; `failed` and why the package cannot be used; or the answer to a ping, which is the memory of
 * the process in MiB.
 */
export type FromWorker = 'ready' | `failed ${string}` | `${number}`;

/**
 * The pipes of the process: calls come to it over the first, its requests to the vendor leave over the second, and the
 * third has the messages above.
 */
export const CALLS_FD = 3;
export const FETCHES_FD = 4;
export const CONTROL_FD = 5;
