import { GatewayError, MoneyError, parseUsd, type MicroUsd } from '#gateway';
import type { ChatBody } from './chat-schema.ts';

/** What requests and errors call it. */
export const MAX_COST = 'max_cost';

/** The body's `max_cost`; null without one. Throws GatewayError `invalid_request`. */
export function maxCostOf({ max_cost: asked }: Pick<ChatBody, 'max_cost'>): MicroUsd | null {
  if (asked === undefined || asked === null) return null;
  try {
    return parseUsd(asked, MAX_COST);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new GatewayError('invalid_request', error.message, { param: MAX_COST, cause: error });
  }
}
