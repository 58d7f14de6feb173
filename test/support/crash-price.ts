import type { PriceVersion } from '#billing';
import { priceId } from '#billing/amounts';

const rates = { call: 1_000_000n };

/** One micro-USD per call: the price with which the crashing child settles. */
export const CRASH_PRICE: PriceVersion = { id: priceId('p', 'crash', rates), provider: 'p', service: 'crash', rates };
