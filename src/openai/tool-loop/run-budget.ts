import { GatewayError } from '#wire';
import { cost, costAtMost, type MicroUsd } from '#billing/amounts';
import { requestedModels, type Catalog, type Offer, resolveAny } from '#gateway';
import { chatBudget, checkFits, toUsage } from '../caps/chat-budget.ts';
import type { ChatBody } from '../request/chat-schema.ts';
import { maxCostOf } from '../request/max-cost.ts';
import { measurePrompt } from '../request/prompt-size.ts';
import type { ServerTool } from './server-tools.ts';

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
export function runBudget(body: ChatBody, { catalog, tools, rounds, costMax }: RunBudgetOptions): MicroUsd {
  const asked = maxCostOf(body);
  if (asked !== null) return asked.amount;
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
        most = max(most ?? 0n, costAtMost(offer.price.rates, toUsage(chatBudget(body, size, offer), size)));
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
  for (const [service, named] of Map.groupBy(tools, (tool) => tool.service))
    for (const offer of catalog.resolve(service, 'tool').offers)
      for (const { tool } of named) most = max(most, callCost(offer, tool));
  return most;
}

function callCost({ variants, price, priceCap }: Offer, tool: string): MicroUsd {
  if (Object.hasOwn(variants, tool)) return cost(variants[tool]!.rates, ONE_CALL);
  return priceCap ?? cost(price.rates, ONE_CALL);
}

const ONE_CALL = { call: 1n };
const max = (one: MicroUsd, other: MicroUsd): MicroUsd => (one > other ? one : other);
