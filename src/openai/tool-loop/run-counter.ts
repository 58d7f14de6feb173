import { formatUsd, toUsdNumber, type MicroUsd, type SettledFrame, type Settlement } from '#billing/amounts';
import type { Call } from '#gateway';
import type { ChatTail } from '../reply/chat-end.ts';

/** The usage and cost of a run's calls, as they settle. */
export interface RunCounter {
  settled(call: Call, frame: SettledFrame): void;
  /** Adds the usage of a finished turn of the model. */
  used(tail: Pick<ChatTail, 'usage' | 'promptCost' | 'completionCost'>): void;
  /** The charge for the prompts of all turns, micro-USD. */
  readonly promptCost: MicroUsd;
  /** The charge for completion tokens, micro-USD. */
  readonly completionCost: MicroUsd;
  readonly charged: bigint;
  readonly settlement: Settlement;
  readonly usage: Readonly<Record<string, unknown>>;
  /** The settled calls, in the order in which they settled. */
  readonly children: readonly ChildCost[];
}

/** One call of a run as the reply lists it. */
interface ChildCost {
  readonly id: string;
  readonly primitive: string;
  readonly service: string;
  readonly tool?: string;
  /** USD. */
  readonly cost: number;
  readonly charged_usd: string;
  readonly receipt?: string;
}

export function createRunCounter(): RunCounter {
  return new Counter();
}

class Counter implements RunCounter {
  promptCost = 0n;
  completionCost = 0n;
  readonly settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };
  readonly children: ChildCost[] = [];
  #prompt = 0;
  #completion = 0;
  #estimated = false;

  get charged(): bigint {
    return this.settlement.charged;
  }

  get usage(): Readonly<Record<string, unknown>> {
    return {
      prompt_tokens: this.#prompt,
      completion_tokens: this.#completion,
      total_tokens: this.#prompt + this.#completion,
      ...(this.#estimated ? { estimated: true } : {}),
    };
  }

  settled(call: Call, { settlement, receipt }: SettledFrame): void {
    this.settlement.charged += settlement.charged;
    this.settlement.fee += settlement.fee;
    this.settlement.drawn += settlement.drawn;
    this.settlement.shortfall += settlement.shortfall;
    this.children.push({
      id: call.id,
      primitive: call.primitive,
      service: call.service,
      ...(call.operation === null ? {} : { tool: call.operation }),
      cost: toUsdNumber(settlement.charged),
      charged_usd: formatUsd(settlement.charged),
      ...(receipt === null ? {} : { receipt }),
    });
  }

  used({ usage, promptCost = 0n, completionCost = 0n }: Parameters<RunCounter['used']>[0]): void {
    const { prompt_tokens: asked, completion_tokens: said, estimated } = usage;
    this.promptCost += promptCost;
    this.completionCost += completionCost;
    if (typeof asked === 'number') this.#prompt += asked;
    if (typeof said === 'number') this.#completion += said;
    this.#estimated ||= estimated === true;
  }
}
