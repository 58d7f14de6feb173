import { GatewayError } from '#wire';
import type { MicroUsd } from '#billing/amounts';
import type { Config } from '#config';
import { requestedModels, type Catalog, type Pipeline, resolveAny, type Runs, type TargetAdapter } from '#gateway';
import type { SentRequest } from '../reply/altered-headers.ts';
import type { OpenChat, ReplyAbout } from '../chat-reply.ts';
import type { ChatBody, ChatTool } from '../request/chat-schema.ts';
import { TOOL_ROUNDS_DEFAULT } from '../request/gateway-fields.ts';
import { toCall, type ChatContext } from '../chat-to-call.ts';
import { runBudget } from './run-budget.ts';
import { resolveServerTools, type ToolFacts } from './server-tools.ts';
import { runFrames } from './run-frames.ts';

export interface ToolLoopDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly runs: Runs;
  /** The tools of a service. Rejects with GatewayError `not_found`. */
  readonly toolsOf: (service: string) => Promise<readonly ToolFacts[]>;
  /** Highest budget of a run whose client sends no `max_cost`. */
  readonly budgetMax: MicroUsd;
}

interface ToolLoopOptions {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly config: Pick<Config, 'limits' | 'upstream'>;
  readonly deps: ToolLoopDeps | null;
  /** Calls the tools; null if the gateway has no tools. */
  readonly mcp: TargetAdapter | null;
  /** Gets unexpected errors. */
  readonly onError: (error: unknown) => void;
}

/**
 * Opens a run for a chat request with tools that the gateway calls. Each turn of the model and each tool call is
 * billed, from the one lock of the run. Throws GatewayError `invalid_request`.
 */
export function openToolLoop(
  { pipeline, config, deps, mcp, onError }: ToolLoopOptions,
  body: ChatBody,
  context: ChatContext,
): OpenChat {
  if (deps === null || mcp === null) throw invalid('This gateway does not support tools of type mcp', 'tools');
  if ((body.n ?? 1) > 1) throw invalid('n must be 1 if the gateway calls tools', 'n');
  if (body['functions'] !== undefined && body['functions'] !== null)
    throw invalid(
      'functions cannot be used together with tools that the gateway calls. Name the functions in tools',
      'functions',
    );
  const tools = body.tools as readonly ChatTool[];
  const rounds = body.max_tool_rounds ?? TOOL_ROUNDS_DEFAULT;
  // This throws for an invalid request before anything is looked up.
  toCall({ ...body, max_cost: null }, context);

  return async (callId, gone) => {
    const resolved = await resolveServerTools(tools, deps.toolsOf);
    for (const { service } of resolved.named.values())
      authorise(context, deps.catalog.resolve(service, 'tool').service);
    const first: ChatBody = { ...body, tools: [...resolved.all] };
    const budget = runBudget(first, {
      catalog: deps.catalog,
      tools: resolved.named.values(),
      rounds,
      costMax: deps.budgetMax,
    });
    const { service } = resolveAny(deps.catalog, requestedModels(body), 'model')[0]!;
    const sent = new LatestTurn();
    const about: ReplyAbout = {
      id: callId,
      model: service,
      stream: body.stream === true,
      startedAt: context.now,
      sent,
    };
    const onTurn = (exchange: SentRequest) => void (sent.turn = exchange);
    const frames = runFrames(
      { pipeline, config, runs: deps.runs, mcp, tools: resolved, rounds, budget, about, onTurn, onError },
      body,
      context,
      gone,
    );
    return { id: callId, call: null, about, frames };
  };
}

/** The changes to the request of the latest turn of a run. */
class LatestTurn implements SentRequest {
  /** null before the first turn. */
  turn: SentRequest | null = null;

  get asked(): boolean {
    return this.turn?.asked === true;
  }

  get dropped(): readonly string[] {
    return this.turn?.dropped ?? [];
  }

  get maxTokens(): number | null {
    return this.turn?.maxTokens ?? null;
  }
}

/**
 * Refuses a service that the key may not use. Without this check, its tools would be refused only after the first
 * turn was paid.
 */
function authorise({ caller }: ChatContext, service: string): void {
  const allowed = caller.key?.allowedServices;
  if (!allowed || allowed.includes(service)) return;
  throw new GatewayError(
    'permission_denied',
    `This API key may not use ${service}. It is limited to: ${allowed.slice(0, 20).join(', ')}`,
    {
      param: 'tools',
    },
  );
}

const invalid = (message: string, param: string) => new GatewayError('invalid_request', message, { param });
