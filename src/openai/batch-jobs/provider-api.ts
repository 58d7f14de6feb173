import type { Scrub } from '#security';
import type { Batch } from './batch.ts';

/** The provider of some lines of a batch: the offer that serves them, and the account that pays. */
export interface ProviderPlace {
  readonly offer: string;
  readonly account: string;
}

export interface RemoteBatch {
  readonly status: string;
  readonly outputFile: string | null;
  readonly errorFile: string | null;
  /** How many of its requests the provider has done; null if it does not say. */
  readonly done: number | null;
  /** Why it failed as a whole, safe to show to clients. */
  readonly faults: readonly { readonly code: string; readonly message: string }[];
}

/**
 * The batches of providers. The protocol of the models implements it. All methods reject with ProviderFailure, also if
 * the offer is gone.
 */
export interface ProviderApi {
  /** Stores a file of requests. Resolves with its id at the provider. */
  upload(place: ProviderPlace, name: string, lines: readonly Uint8Array[]): Promise<string>;
  /** Begins a batch of an uploaded file. `tag`: our name for it, which it carries. Resolves with its id. */
  create(place: ProviderPlace, file: string, path: string, tag: string): Promise<string>;
  /** The id of the batch of this file, created after `since` (epoch milliseconds); null if it does not exist. */
  find(place: ProviderPlace, file: string, since: number): Promise<string | null>;
  lookUp(place: ProviderPlace, remote: string): Promise<RemoteBatch>;
  cancel(place: ProviderPlace, remote: string): Promise<void>;
  /** The content of a file. It fails as `tooLarge` after `bytesMax`, and when `stop` is aborted. */
  read(place: ProviderPlace, file: string, bytesMax: number, stop: AbortSignal): AsyncIterable<Buffer>;
  remove(place: ProviderPlace, file: string): Promise<void>;
  /** Whether the provider of an offer takes further batches, as far as this gateway knows. */
  takes(offer: string): boolean;
  /** The provider of an offer. Of an offer that is gone, the id of the offer. */
  providerOf(offer: string): string;
  /** Removes the secrets of the provider's address from its texts. */
  scrubOf(offer: string): Scrub;
}

/** A request to a provider about a batch failed. The message is safe to show to clients. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
  /** The status of its answer; null if none came. */
  readonly status: number | null;
  /** The request did not reach the provider. */
  readonly unsent: boolean;
  /** The file has more bytes than are read. The message has both numbers. */
  readonly tooLarge: boolean;

  constructor(
    message: string,
    {
      status = null,
      unsent = false,
      tooLarge = false,
    }: { status?: number | null; unsent?: boolean; tooLarge?: boolean } = {},
  ) {
    super(message);
    this.status = status;
    this.unsent = unsent;
    this.tooLarge = tooLarge;
  }

  /** The provider has refused the request, and would refuse it again. */
  get isRefusal(): boolean {
    return this.status !== null && this.status >= 400 && this.status < 500 && !AGAIN.has(this.status);
  }

  /** The provider may have done what it was asked for. */
  get isUnclear(): boolean {
    return !this.unsent && (this.status === null || this.status >= 500 || this.status === 408);
  }
}

const AGAIN: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** The line with a request in a file for a provider. The id of the call is its name, so no two lines have the same. */
export function toProviderLine(callId: string, path: string, body: Uint8Array): Buffer {
  const start = `{"custom_id":"${callId}","method":"POST","url":"/v1${path}","body":`;
  return Buffer.concat([Buffer.from(start), onOneLine(body), LINE_END]);
}

/** A JSON text without line ends, which would begin another request. In JSON they are white space. */
function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === LF || byte === CR ? SPACE : byte));
}

const LINE_END = Buffer.from('}\n');
const LF = 10;
const CR = 13;
const SPACE = 32;

/** The answer of a provider to a line, or the reason why it has none. */
export type ProviderAnswer =
  /** `body`: JSON text. */
  | { readonly status: number; readonly body: string }
  /** The answer has too many bytes. Only the end of its body is kept, which may have its usage. */
  | { readonly status: number; readonly body: string; readonly tooLarge: string }
  /** The provider may have done the request, and did not end its batch in time. `body` is empty. */
  | { readonly status: number; readonly body: string; readonly late: string }
  | { readonly error: { readonly code: string; readonly message: string } }
  /** The batch was cancelled before the provider made the request: the line has no result. */
  | { readonly dropped: true };

/** The time at which the locks of a batch expire. Its last lines end in the hour after its own time. */
export const locksUntil = ({ expiresAt }: Pick<Batch, 'expiresAt'>): number => expiresAt + GRACE_MS;

/** From the end of the time of a batch until its locks expire. */
export const GRACE_MS = 3_600_000;
