import { GatewayError } from '#errors';
import { type MicroUsd, cost, costAtMost } from '#billing/amounts';
import type { Config } from '#config';
import { authorise, requestedModels, type Pipeline, type Runs } from '#call';
import { type Catalog, resolveAny, type Offer } from '#catalog';
import type { TargetAdapter } from '#bridge';
import type { SentRequest } from '../chat/request/altered-headers.ts';
import type { OpenChat, ReplyAbout } from '../chat/reply/chat-reply.ts';
import { type ChatBody, type ChatTool, TOOL_ROUNDS_DEFAULT } from '../chat/chat-schema.ts';
import { toCall, type ChatContext, maxCostOf } from '../call/chat-to-call.ts';
import { resolveServerTools, type ToolFacts, type ServerTool } from './server-tools.ts';
import { runFrames } from './run-frames.ts';
import { chatBudget, checkFits, toUsage } from '../chat/request/chat-budget.ts';
import { askedParts } from '../chat/price/asked-parts.ts';
import { partsAt, priceAt } from '../chat/price/priced-parts.ts';
import { measurePrompt } from '../chat/request/prompt-size.ts';

export interface ToolLoopDeps {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly runs: Runs;
  /** The tools of a service. Rejects with GatewayError `not_found`, or `no_provider_healthy` if they are not known. */
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
  const { metadata, endUser } = toCall({ ...body, max_cost: null }, context).request;

  return async (callId, gone) => {
    const resolved = await resolveServerTools(tools, toolsFor(context, deps));
    const first: ChatBody = { ...body, tools: [...resolved.all] };
    const budget = runBudget(first, {
      catalog: deps.catalog,
      tools: resolved.toolsByName.values(),
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
    const onTurn = (request: SentRequest) => void (sent.turn = request);
    const frames = runFrames(
      {
        pipeline,
        config,
        runs: deps.runs,
        mcp,
        tools: resolved,
        rounds,
        budget,
        about,
        names: { metadata, endUser },
        onTurn,
        onError,
      },
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

  get isRequested(): boolean {
    return this.turn?.isRequested === true;
  }

  get service(): string | null {
    return this.turn?.service ?? null;
  }

  get dropped(): readonly string[] {
    return this.turn?.dropped ?? [];
  }

  get maxTokens(): number | null {
    return this.turn?.maxTokens ?? null;
  }
}

/**
 * The tools that the caller's key may use. Rejects for a service of which it may use none: otherwise its tools would be
 * refused only after the first turn was paid.
 */
function toolsFor({ caller }: ChatContext, { catalog, toolsOf }: ToolLoopDeps): ToolLoopDeps['toolsOf'] {
  const access = caller.key?.access;
  if (!access) return toolsOf;
  return async (name) => {
    const all = await toolsOf(name);
    const { service } = catalog.resolve(name, 'tool');
    if (!access.reaches('tool', service)) authorise(caller, 'tool', service, null, 'tools');
    return all.filter((tool) => access.allows('tool', service, tool.name));
  };
}

const invalid = (message: string, param: string) => new GatewayError('invalid_request', message, { param });

/** Tool calls that a budget without `max_cost` assumes for each round. */
const CALLS_PER_ROUND = 4;

interface RunBudgetOptions {
  readonly catalog: Pick<Catalog, 'resolve'>;
  readonly tools: Iterable<ServerTool>;
  readonly rounds: number;
  /** Highest budget without `max_cost`. */
  readonly costMax: MicroUsd;
}

/**
 * The most that a run may cost. It is the client's `max_cost`. Without one, it is the cost of all rounds at this
 * model and these tools, but at most `costMax`, and at least the cost of the first turn. Throws GatewayError
 * `invalid_request`, `invalid_model`, `unprocessable`.
 */
function runBudget(body: ChatBody, { catalog, tools, rounds, costMax }: RunBudgetOptions): MicroUsd {
  const requestedCap = maxCostOf(body);
  if (requestedCap !== null) return requestedCap.amount;
  const turn = turnCost(body, catalog);
  const all = turn * BigInt(rounds + 1) + dearest([...tools], catalog) * BigInt(rounds * CALLS_PER_ROUND);
  return max(turn, all < costMax ? all : costMax);
}

function turnCost(body: ChatBody, catalog: RunBudgetOptions['catalog']): MicroUsd {
  const size = measurePrompt(body);
  let most: MicroUsd | null = null;
  let unfit: GatewayError | null = null;
  for (const { offers } of resolveAny(catalog, requestedModels(body), 'model'))
    for (const offer of offers) {
      try {
        checkFits(size, offer);
        const parts = partsAt(offer, () => askedParts(body));
        const { rates } = priceAt(offer, body['service_tier']);
        most = max(most ?? 0n, costAtMost(rates, toUsage(chatBudget(body, size, offer), size, parts)));
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        unfit ??= error;
      }
    }
  if (most === null && unfit !== null) throw unfit;
  return most ?? 0n;
}

function dearest(tools: readonly ServerTool[], catalog: RunBudgetOptions['catalog']): MicroUsd {
  let most = 0n;
  for (const [service, serviceTools] of Map.groupBy(tools, (tool) => tool.service))
    for (const offer of catalog.resolve(service, 'tool').offers)
      for (const { tool } of serviceTools) most = max(most, callCost(offer, tool));
  return most;
}

function callCost({ variants, price, priceCap }: Offer, tool: string): MicroUsd {
  if (Object.hasOwn(variants, tool)) return cost(variants[tool]!.rates, ONE_CALL);
  return priceCap ?? cost(price.rates, ONE_CALL);
}

const ONE_CALL = { call: 1n };
const max = (one: MicroUsd, other: MicroUsd): MicroUsd => (one > other ? one : other);
