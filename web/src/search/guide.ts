export { wordsOfQuestion } from './ranking.ts';
import { createSearch, type Search } from './ranking.ts';

/** A part of a page of the guide below one heading. */
type GuidePart = readonly [address: string, page: string, heading: string, text: string];

/**
 * Pages that say what to do come before those that list all about a subject, and callers' pages before those of
 * sellers, who are fewer.
 */
const WEIGHTS: readonly (readonly [folder: RegExp, weight: number])[] = [
  [/\/guide\/(?:reference|release|dependencies|clients)\b/, 0.7],
  [/\/guide\/sell\b/, 0.85],
];
const weightOf = ([address]: GuidePart): number => WEIGHTS.find(([folder]) => folder.test(address))?.[1] ?? 1;

/** The share of its points that the next place of the same page has: the first places are of several pages. */
const SAME_PAGE = 0.6;

/** The search of the guide, over the parts of its pages. */
export function createGuideSearch(parts: readonly GuidePart[]): Search<GuidePart> {
  return createSearch(
    parts,
    [
      { name: 'heading', weight: 6, text: ([, , heading]) => heading },
      { name: 'page', weight: 4, text: ([, page]) => page },
      { name: 'text', weight: 1, text: ([, , , text]) => text },
    ],
    {
      weightOf,
      group: { of: ([, page]) => page, share: SAME_PAGE },
      subjectsOf: ([, page, heading]) => (heading === page ? page : '').split(/[:?()]/),
    },
  );
}
