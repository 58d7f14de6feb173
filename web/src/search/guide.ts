export { wordsOfQuestion } from './ranking.ts';
import { createSearch, type Search } from './ranking.ts';

/** A part of a page of the guide below one heading. */
type GuidePart = readonly [address: string, page: string, heading: string, text: string];

/** The search of the guide, over the parts of its pages. */
export const createGuideSearch = (parts: readonly GuidePart[]): Search<GuidePart> =>
  createSearch(parts, [
    { name: 'heading', weight: 6, text: ([, , heading]) => heading },
    { name: 'page', weight: 4, text: ([, page]) => page },
    { name: 'text', weight: 1, text: ([, , , text]) => text },
  ]);
