import type { AnswerOf } from './types.ts';

/** The market's figures over a range of days. Money is in micro-USD. */
export type MarketFigures = AnswerOf<'publicAnalytics'>;

/** The figures of one service over 30 days. */
export type ServiceFigures = AnswerOf<'serviceAnalytics'>['data'];
export type ProviderFigures = ServiceFigures['providers'][number];
export type PriceVersion = ProviderFigures['prices'][number];
