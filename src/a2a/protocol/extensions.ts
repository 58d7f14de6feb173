import type { IncomingHttpHeaders } from 'node:http';
import type { UpstreamReply } from '#call';
import { X402_EXTENSION, X402_FAMILY, type A2aVersion } from '../wire/protocol.ts';

/** The header of extensions in each version, for requests and for replies. */
const EXTENSIONS_HEADER = { '0.3': 'x-a2a-extensions', '1.0': 'a2a-extensions' } as const satisfies Record<
  A2aVersion,
  string
>;

/** The extensions that a request activates, at its agent and at the gateway. */
export class Extensions {
  /** Those for the agent, as the client wrote them; null for none. */
  readonly forAgent: string | null;
  /** The header that the client used. So its reply has the same. */
  readonly #name: string;
  readonly #own: readonly string[];
  #theirs: readonly string[] = NONE;

  /** `paid`: the gateway has its own extension for payments. */
  constructor(headers: IncomingHttpHeaders, paid: boolean) {
    this.#name = EXTENSIONS_HEADER[headers[EXTENSIONS_HEADER['1.0']] === undefined ? '0.3' : '1.0'];
    const askedNames = headers[this.#name];
    const all = typeof askedNames === 'string' && askedNames !== '' ? askedNames.split(',') : NONE;
    const theirs = paid ? all.filter((uri) => !uri.trim().startsWith(X402_FAMILY)) : all;
    this.forAgent = theirs.length === 0 ? null : theirs.join(',');
    this.#own = paid && all.some((uri) => uri.trim() === X402_EXTENSION) ? [X402_EXTENSION] : NONE;
  }

  /** For the request to an agent of this version. */
  headersFor(version: A2aVersion): Readonly<Record<string, string>> {
    return this.forAgent === null ? NO_HEADERS : { [EXTENSIONS_HEADER[version]]: this.forAgent };
  }

  /** Notes what the agent of this reply has activated, of what the client asked for. */
  hear(headers: Readonly<Record<string, unknown>>): void {
    if (this.forAgent === null) return;
    const activeNames = headers[EXTENSIONS_HEADER['1.0']] ?? headers[EXTENSIONS_HEADER['0.3']];
    const activated = new Set(urisIn(String(activeNames ?? '')));
    this.#theirs = urisIn(this.forAgent).filter((uri) => activated.has(uri));
  }

  /** For the client's reply: what is activated at the gateway and at the agent. */
  get headers(): Readonly<Record<string, string>> {
    const activated = [...this.#own, ...this.#theirs];
    return activated.length === 0 ? NO_HEADERS : { [this.#name]: activated.join(', ') };
  }
}

const NONE: readonly string[] = [];
const NO_HEADERS = {};
const urisIn = (list: string): readonly string[] => list.split(',').map((uri) => uri.trim());

export function hear(extensions: Extensions | null, { headers }: Pick<UpstreamReply, 'headers'>): void {
  extensions?.hear(headers);
}
