import type { Schemas } from './types.ts';

/** A price of the API, in USD. Its members depend on the kind. */
export type Pricing = Schemas['Pricing'];

/**
 * The price of one tool of a service, in USD. `per_call_max` is the most that a call costs, for a tool that is charged
 * by use.
 */
export type ToolPrice = Pick<Schemas['ToolPrice'], 'per_call' | 'per_call_max'>;
