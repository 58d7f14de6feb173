import type { Primitive } from '#config';
import type { Caller } from '#accounts';
import type { Offer } from '#catalog';
import type { CallRequest } from '#call';
import type { ContentResult, EventBatch, FilePart, Part } from './call-event.ts';

export interface ContentTurn {
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly Part[];
}

export interface TargetRequest {
  /** At least one. The last turn is the user's. */
  readonly turns: readonly ContentTurn[];
  /** Arguments of a tool, if the route has them as an object; null if there are only parts. */
  readonly arguments: Readonly<Record<string, unknown>> | null;
  /** The agent's context and task that this message continues; null to begin. */
  readonly contextId: string | null;
  readonly taskId: string | null;
  /** Maximum tokens of the answer; null for the primitive's own limit. */
  readonly maxTokens: number | null;
  readonly stream: boolean;
}

export interface TargetContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
}

/** The description of a primitive, for clients that have not called it yet. */
export interface ServiceDescription {
  readonly displayName: string;
  /** May be empty. */
  readonly description: string;
  /** Its offers, with the prices that its calls have. Not empty. */
  readonly offers: readonly Offer[];
  /** Media types of the parts that it accepts and returns, the most usual one first. */
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
}

/**
 * A kind of primitive that a route of another protocol can call with parts. Bridges are built on it. The route prepares
 * and runs the call like any other, so it is billed like a call of that primitive.
 */
export interface TargetAdapter {
  readonly primitive: Primitive;
  /**
   * Whether a service of this name exists (`weather`, `gpt-mini`; for tools `service/tool`). Used to choose a route.
   */
  has(name: string): boolean;
  /** Names of the services, sorted, with one sentence for each; at most `limit`. */
  list(limit: number): readonly { readonly name: string; readonly displayName: string; readonly description: string }[];
  /** Describes a service; null for an unknown name. Absent if the primitive's own protocol describes it. */
  about?(name: string): Promise<ServiceDescription | null>;
  /**
   * Rejects with GatewayError `invalid_model` for an unknown name, `invalid_request` or `unprocessable` for a request
   * that the primitive cannot serve.
   */
  toCall(name: string, ask: TargetRequest, context: TargetContext): Promise<CallRequest<ContentResult, EventBatch>>;
}

/**
 * Target adapters by the prefix that the routes of other protocols use for their names: `a2a/weather`,
 * `mcp/files/read`, `model/gpt-mini`.
 */
export interface TargetAdapters {
  readonly a2a: TargetAdapter;
  readonly mcp: TargetAdapter;
  readonly model: TargetAdapter;
  readonly image: TargetAdapter;
  readonly video: TargetAdapter;
}

/** The target adapters of all protocols. Each protocol gets them before all are made, because it asks at a request. */
export class TargetTable {
  #adapters: Partial<TargetAdapters> = {};
  readonly all = (): Partial<TargetAdapters> => this.#adapters;

  add(adapters: Partial<TargetAdapters>): void {
    this.#adapters = { ...this.#adapters, ...adapters };
  }
}

/** `a2a/weather` → the target adapter of agents and `weather`; null for a name without a known prefix. */
export function targetOf(
  targets: Partial<TargetAdapters>,
  name: string,
): { readonly target: TargetAdapter; readonly name: string } | null {
  const slash = name.indexOf('/');
  const prefix = slash === -1 ? '' : name.slice(0, slash);
  const target = Object.hasOwn(targets, prefix) ? targets[prefix as keyof TargetAdapters] : undefined;
  return target === undefined ? null : { target, name: name.slice(slash + 1) };
}

/** The last turn as a prompt: its texts, with data as JSON, and its files. */
export function lastOf(turns: readonly ContentTurn[]): {
  readonly prompt: string;
  readonly files: readonly FilePart[];
} {
  const parts: readonly Part[] = turns.at(-1)?.parts ?? [];
  const texts = parts.flatMap((part) =>
    part.kind === 'file' ? [] : [part.kind === 'text' ? part.text : JSON.stringify(part.data)],
  );
  return { prompt: texts.join('\n').trim(), files: parts.filter((part) => part.kind === 'file') };
}
