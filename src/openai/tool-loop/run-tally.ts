import { formatUsd, toUsdNumber, type MicroUsd, type SettledFrame, type Settlement } from '#billing/amounts';
import type { Call } from '#gateway';
import type { ChatTail } from '../reply/chat-end.ts';

/** The usage and cost of a run's calls, as they settle. */
export interface RunTally {
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

export function createRunTally(): RunTally {
  const children: ChildCost[] = [];
  const sums = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };
  let prompt = 0;
  let completion = 0;
  let promptCost = 0n;
  let completionCost = 0n;
  let estimated = false;
  return {
    children,
    settlement: sums,
    get charged() {
      return sums.charged;
    },
    get promptCost() {
      return promptCost;
    },
    get completionCost() {
      return completionCost;
    },
    get usage() {
      return {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        ...(estimated ? { estimated } : {}),
      };
    },
    settled(call, { settlement, receipt }) {
      sums.charged += settlement.charged;
      sums.fee += settlement.fee;
      sums.drawn += settlement.drawn;
      sums.shortfall += settlement.shortfall;
      children.push({
        id: call.id,
        primitive: call.primitive,
        service: call.service,
        ...(call.operation === null ? {} : { tool: call.operation }),
        cost: toUsdNumber(settlement.charged),
        charged_usd: formatUsd(settlement.charged),
        ...(receipt === null ? {} : { receipt }),
      });
    },
    used({ usage, promptCost: ofPrompt = 0n, completionCost: ofTurn = 0n }) {
      const { prompt_tokens: asked, completion_tokens: said, estimated: measured } = usage;
      promptCost += ofPrompt;
      completionCost += ofTurn;
      if (typeof asked === 'number') prompt += asked;
      if (typeof said === 'number') completion += said;
      estimated ||= measured === true;
    },
  };
}
