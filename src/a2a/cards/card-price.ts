import { formatUsd, type MicroUsd, unitUsd } from '#billing/amounts';
import { byPrice, type Offer } from '#gateway';

/**
 * The price of a message to an agent, as exact decimal texts of USD. It is the cheapest provider's, except for the
 * maximum.
 */
export interface CardPrice {
  readonly currency: 'USD';
  /** Set where each message is charged; "0" where a message as such costs nothing. */
  readonly per_call_usd?: string;
  /** Set where all messages of a task are charged once. */
  readonly per_task_usd?: string;
  readonly per_second_usd?: string;
  readonly per_1m_prompt_tokens_usd?: string;
  readonly per_1m_completion_tokens_usd?: string;
  /** The most that one message, or one task, costs: by its use, or at a dearer provider. Only where that is more. */
  readonly maximum_usd?: string;
  /**
   * The most that the agent may spend, on top, on calls of its own in the consumer's name, unless the consumer
   * names another budget. It is that of the provider that asks most.
   */
  readonly nested_maximum_usd?: string;
}

/** The price of a service. `offers` is not empty. */
export function cardPrice(offers: readonly Offer[]): CardPrice {
  const [cheapest] = byPrice(offers) as [Offer];
  const { call = 0n, second, prompt, completion } = cheapest.price.rates;
  const most = offers.reduce((dearest, offer) => (mostOf(offer) > dearest ? mostOf(offer) : dearest), 0n);
  const nested = offers.reduce(
    (largest, { agent }) => (agent && agent.nestedMax > largest ? agent.nestedMax : largest),
    0n,
  );
  return {
    currency: 'USD',
    ...(cheapest.agent?.chargedPer === 'task' ? { per_task_usd: unitUsd(call) } : { per_call_usd: unitUsd(call) }),
    ...(second === undefined ? {} : { per_second_usd: unitUsd(second) }),
    ...(prompt === undefined ? {} : { per_1m_prompt_tokens_usd: formatUsd(prompt) }),
    ...(completion === undefined ? {} : { per_1m_completion_tokens_usd: formatUsd(completion) }),
    ...(most * UNITS > call ? { maximum_usd: formatUsd(most) } : {}),
    ...(nested > 0n ? { nested_maximum_usd: formatUsd(nested) } : {}),
  };
}

/** Rates are micro-USD for a million. */
const UNITS = 1_000_000n;

function mostOf({ price, priceCap }: Offer): MicroUsd {
  return priceCap ?? ((price.rates.call ?? 0n) + UNITS - 1n) / UNITS;
}
