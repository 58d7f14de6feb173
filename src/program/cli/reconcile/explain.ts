import { usd } from '../terminal.ts';
import type { Compared, Comparison } from './compare.ts';

/** A reason for a difference, in words. `kind` is for programs. */
export interface Reason {
  readonly kind:
    | 'not_ours'
    | 'not_billed'
    | 'broken'
    | 'aborted'
    | 'free'
    | 'measured'
    | 'claims'
    | 'cached'
    | 'reasoning'
    | 'requests'
    | 'neighbouring_days'
    | 'rounding'
    | 'price'
    | 'own_keys'
    | 'archived'
    | 'cost_unknown'
    | 'loss';
  readonly text: string;
}

/** Reasons for the differences of a comparison. The same facts give the same words, in the same order. */
export function explain(comparison: Comparison, archivedBefore: string | null, firstDay: string): readonly Reason[] {
  const reasons: Reason[] = [];
  const add = (kind: Reason['kind'], text: string) => reasons.push({ kind, text });
  const { models, lines, totals } = comparison;
  if (archivedBefore !== null && firstDay < archivedBefore)
    add(
      'archived',
      `Calls before ${archivedBefore} are in archives and are not compared: give an export that begins then.`,
    );
  const { settled, billed } = totals;
  listed(models.filter((each) => each.settled === null)).forEach((names) =>
    add(
      'not_ours',
      `No call here was of ${names}. These calls were made without this gateway, by another key of the same account, or the name at the vendor is another one. A line of costs that is no model, such as that of searches, stands here too.`,
    ),
  );
  listed(models.filter((each) => each.billed === null && (each.settled?.requests ?? 0) > 0)).forEach((names) =>
    add(
      'not_billed',
      `The export has nothing of ${names}: it may be of another account or project, or end before the vendor has counted these calls. Rows of a vendor may come a day late.`,
    ),
  );
  if (settled !== null) addOfCalls(settled, add);
  if (settled !== null && billed !== null) addOfFigures(comparison, settled, billed, add);
  const dearer = lines.filter((line) => line.isBeyond && isAnotherPrice(line));
  if (dearer.length > 0)
    add(
      'price',
      `The same tokens cost more or less at the vendor than by the cost of the offer: ${dearer.slice(0, SHOWN).map(priceChange).join(', ')}${dearer.length > SHOWN ? ` and on ${dearer.length - SHOWN} other days` : ''}. Its price was another one, or the cost here is not that of this model.`,
    );
  const shifted = models.filter(
    ({ model, isBeyond }) => !isBeyond && lines.filter((line) => line.model === model && line.isBeyond).length > 1,
  );
  listed(shifted).forEach((names) =>
    add(
      'neighbouring_days',
      `${names}: single days differ, all together they do not. A call counts here on the UTC day on which it ended, and at the vendor on that of its request.`,
    ),
  );
  return reasons;
}

/** Whether both sides counted the same requests and tokens, as far as the export has them, and rounding is not all. */
const isAnotherPrice = ({ settled, billed }: Compared): boolean =>
  settled !== null &&
  billed !== null &&
  billed.prompt === settled.prompt &&
  billed.completion === settled.completion &&
  (billed.requests ?? settled.requests) === settled.requests &&
  (billed.cached ?? settled.cached) === settled.cached &&
  (billed.reasoning ?? settled.reasoning) === settled.reasoning &&
  !isRounding((settled.cost ?? 0) - (billed.cost ?? 0), settled.requests, 1);

const priceChange = ({ date, model, settled, billed }: Compared): string =>
  `${date} ${model} ${usd(settled!.cost!)} USD here and ${usd(billed!.cost!)} USD there`;

type Add = (kind: Reason['kind'], text: string) => void;

function addOfCalls(settled: NonNullable<Compared['settled']>, add: Add): void {
  const { broken, aborted, free, measured, claims, ownKeys } = settled;
  if (broken > 0)
    add(
      'broken',
      `${calls(broken, 'attempt')} broke off or took too long here and cost nothing. The vendor may have billed what it had begun.`,
    );
  if (aborted > 0)
    add(
      'aborted',
      `The client of ${calls(aborted, 'call')} left before an answer. The vendor may have billed what it had begun.`,
    );
  if (free > 0)
    add(
      'free',
      `${calls(free, 'answer')} cost nothing here, because they reported a failure or were empty. The vendor may have billed them.`,
    );
  if (measured > 0)
    add(
      'measured',
      `${calls(measured, 'call')} were cut before the vendor reported their use, so it was measured here. The vendor bills its own count.`,
    );
  if (claims > 0)
    add(
      'claims',
      `The reported use of ${calls(claims, 'call')} was beyond what can be charged, so it was cut here. The vendor bills it as it reported it.`,
    );
  if (ownKeys > 0)
    add(
      'own_keys',
      `${calls(ownKeys, 'call')} used a consumer's own key. Its account at the vendor pays them, so they are not compared.`,
    );
}

function addOfFigures(
  comparison: Comparison,
  settled: NonNullable<Compared['settled']>,
  billed: NonNullable<Compared['billed']>,
  add: Add,
): void {
  const { lines, models, totals } = comparison;
  const requests = billed.requests === null ? 0 : billed.requests - settled.requests;
  // By model: what broke off of one model explains no calls of another.
  const foreign = (models.length === 0 ? [totals] : models).reduce((sum, each) => sum + foreignRequests(each), 0);
  const explained = Math.max(0, requests - foreign);
  if (requests > 0)
    add(
      'requests',
      foreign === 0
        ? `The vendor has ${calls(requests, 'request')} more than calls were served here, not more than attempts that broke off and clients that left.`
        : `The vendor has ${calls(requests, 'request')} more than calls were served here; ${explained} of them may be attempts that broke off and clients that left. The others were not of this gateway, or were billed twice.`,
    );
  if (requests < 0)
    add(
      'requests',
      `The vendor has ${calls(-requests, 'request')} fewer than calls were served here. The export may not be complete.`,
    );
  const same = linesWithout(comparison, foreignRequests);
  const [cached, reportedCached] = bothSums(same, 'cached');
  if (cached !== null && cached !== reportedCached)
    add(
      'cached',
      `The export has ${cached} tokens read from a cache, the replies reported ${reportedCached}. Tokens of a cache usually cost less, so this changes the cost and not the count.`,
    );
  const [reasoning, reportedReasoning] = bothSums(same, 'reasoning');
  if (reasoning !== null && reasoning !== reportedReasoning)
    add('reasoning', `The export has ${reasoning} tokens of reasoning, the replies reported ${reportedReasoning}.`);
  const [completion, settledCompletion] = bothSums(linesWithout(comparison, moreRequests), 'completion');
  if (billed.reasoning === null && completion !== null && completion > settledCompletion)
    add(
      'reasoning',
      `The export has ${completion - settledCompletion} more tokens of completions. Reasoning that a reply does not report is billed as a completion.`,
    );
  if (billed.cost === null) return;
  if (settled.cost === null)
    add(
      'cost_unknown',
      'What the calls should cost is not known, because an offer has no cost. Give it in the block of the model: cost = { prompt = …, completion = … }.',
    );
  else if (isRounding(settled.cost - billed.cost, settled.requests, lines.length))
    add('rounding', 'The costs differ by no more than rounding: here each call is rounded up to a micro-USD.');
  if (billed.cost > settled.charged) add('loss', 'The vendor billed more than the consumers were charged.');
}

/** Requests that only the vendor has. 0 if the export does not count them. */
const moreRequests = ({ billed, settled }: Compared): number =>
  Math.max(0, (billed?.requests ?? 0) - (settled?.requests ?? 0));

/** Those of them that neither attempts that broke off nor clients that left can be. */
const foreignRequests = (each: Compared): number =>
  Math.max(0, moreRequests(each) - (each.settled?.broken ?? 0) - (each.settled?.aborted ?? 0));

/**
 * Lines whose tokens are of calls here. A model that has no call here has none, and one with more requests than calls
 * only those of the days on which it has not. Calls over midnight are more on one day and fewer on the next.
 */
function linesWithout({ lines, models, totals }: Comparison, more: (each: Compared) => number): readonly Compared[] {
  const sums = new Map(models.map((each) => [each.model, each]));
  return lines.filter((line) => {
    const sum = sums.get(line.model) ?? totals;
    return sum.settled !== null && (more(sum) === 0 || more(line) === 0);
  });
}

/** The sums at the vendor and here. The first is null if the export does not have the figure. */
function bothSums(
  lines: readonly Compared[],
  name: 'cached' | 'reasoning' | 'completion',
): readonly [number | null, number] {
  const known = lines.map(({ billed }) => billed?.[name] ?? null).filter((value) => value !== null);
  return [
    known.length === 0 ? null : known.reduce((total, value) => total + value, 0),
    // Costs of a day that are of no model stand beside the models' lines, and have no tokens.
    lines.reduce((total, { billed, settled }) => total + (billed?.[name] === null ? 0 : (settled?.[name] ?? 0)), 0),
  ];
}

/** Each call here is rounded up, each line of the export to the nearest micro-USD. */
const isRounding = (more: number, requests: number, lines: number): boolean =>
  more !== 0 && more >= -lines && more <= requests + lines;

const calls = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;

const SHOWN = 10;
/** The names of models as one text, in a list. Empty for none. */
function listed(models: readonly Compared[]): readonly string[] {
  if (models.length === 0) return [];
  const names = models.slice(0, SHOWN).map(({ model }) => model ?? 'all models');
  return [models.length > SHOWN ? `${names.join(', ')} and ${models.length - SHOWN} others` : names.join(', ')];
}
