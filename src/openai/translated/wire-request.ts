import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '#accounts';
import type { TargetAdapters } from '#bridge';
import { type Dialect, dialectOf } from '#http';
import type { ChatBody } from '../chat/chat-schema.ts';
import { measurePrompt, tokensOf } from '../chat/request/prompt-size.ts';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { Seals, type SealsDeps } from './seals.ts';
import { hostOfUrl, isBridged, serviceAtAddress, withoutAlias } from './service-names.ts';
import { ToolNames } from './tool-names.ts';

/** The parts of the gateway that every wire but chat needs. */
export interface WireDeps extends ChatDeps, SealsDeps {}

interface WireRequestDeps extends SealsDeps {
  /** Host of the gateway's own address; null without one. */
  readonly publicHost: string | null;
  readonly targets: () => Partial<TargetAdapters>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

const NO_TARGETS: Partial<TargetAdapters> = {};

export const requestDepsOf = ({
  thinking,
  calls,
  config,
  now,
  targets = () => NO_TARGETS,
}: Pick<WireDeps, keyof SealsDeps | 'config' | 'now' | 'targets'>): WireRequestDeps => ({
  thinking,
  calls,
  publicHost: hostOfUrl(config.publicUrl),
  targets,
  now,
});

const SESSION_MAX = 256;

/** A request of another wire than chat, besides its body: who sent it, and what its translation needs. */
export class WireRequest {
  readonly caller: Caller;
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
  readonly dialect: Dialect;
  /** Epoch milliseconds. */
  readonly now: number;
  /** The model without its alias. */
  readonly model: string;
  /** The model is an agent or a tool. */
  readonly isBridged: boolean;
  readonly toolNames = new ToolNames();
  /** A provider of the model speaks the wire, and gets the request as it came. */
  isNative = false;
  /** Names of what the translation leaves out of the conversation. */
  readonly leftOut = new Set<string>();
  /** Host of this gateway, as the client called it. */
  readonly #host: string;
  readonly #deps: WireRequestDeps;
  #seals: Seals | null = null;

  /** `modelName`: the model as the client named it. */
  constructor(
    { id, headers, host, originalUrl }: Pick<FastifyRequest, 'id' | 'headers' | 'host' | 'originalUrl'>,
    caller: Caller,
    modelName: string,
    deps: WireRequestDeps,
  ) {
    const targets = deps.targets();
    this.caller = caller;
    this.requestId = id;
    this.headers = headers;
    this.dialect = dialectOf({ originalUrl });
    this.now = deps.now();
    this.model = withoutAlias(modelName, targets);
    this.isBridged = isBridged(this.model) && !targets.model?.has(this.model);
    this.#host = host;
    this.#deps = deps;
  }

  get seals(): Seals {
    return (this.#seals ??= new Seals(this.#deps, { account: this.caller.account, model: this.model }));
  }

  serviceAt(url: string): string | null {
    return serviceAtAddress(url, [this.#host, this.#deps.publicHost]);
  }

  /** The session that a header of the client names; null for none. */
  sessionIn(header: string): string | null {
    const session = this.headers[header];
    return typeof session === 'string' && session !== '' && session.length <= SESSION_MAX ? session : null;
  }
}

/** Estimated tokens of a prompt, for a stream that states them before its provider reports its usage. */
export const promptTokensOf = (body: ChatBody): number => tokensOf(measurePrompt(body).bytes);
