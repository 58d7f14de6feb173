import { type Paint, table, usd } from '../terminal.ts';
import type { Compared, Comparison } from './compare.ts';
import type { Reason } from './explain.ts';

interface ReportHead {
  readonly vendor: string;
  readonly formats: readonly string[];
  readonly providers: readonly string[];
  readonly firstDay: string;
  readonly lastDay: string;
}

const HEADINGS = ['DAY', 'MODEL', 'CALLS', 'PROMPT', 'COMPLETION', 'COST', 'CHARGED', 'MARGIN', 'DIFFERS'];
const AMOUNTS = HEADINGS.slice(2);

/** The comparison as text for people. */
export function showComparison(
  head: ReportHead,
  comparison: Comparison,
  reasons: readonly Reason[],
  paint: Paint,
): string {
  const { lines, models, totals, bound, isBeyond } = comparison;
  const perModel = models.length > 1 || lines.length > models.length ? models : [];
  const differing = lines.filter(({ difference }) => difference > 0);
  const rows = [...(perModel.length > 0 ? differing : lines), ...perModel, totals].map((each) => cellsOf(each));
  const { use, costs } = comparison.compared;
  const what = use && costs ? '' : use ? ' in calls and tokens; costs were not compared' : ' in costs';
  const verdict = isBeyond
    ? paint(['bold', 'red'], `The vendor and this gateway differ by more than ${percent(bound)}${what}.`)
    : paint(
        ['bold', costs ? 'green' : 'yellow'],
        `The vendor and this gateway differ by no more than ${percent(bound)}${what}.`,
      );
  return [
    `${head.formats.join(' and ')}; days ${head.firstDay} to ${head.lastDay} (UTC)`,
    `Providers here: ${head.providers.join(', ') || 'none with a call on these days'}`,
    '',
    table(HEADINGS, rows, paint, AMOUNTS),
    '',
    paint(
      'dim',
      `Two figures are here / at the vendor. Amounts are USD. ${differing.length < lines.length && perModel.length > 0 ? 'Days without a difference are in --json. ' : ''}Nothing was booked.`,
    ),
    ...(reasons.length === 0 ? [] : ['', ...reasons.map(({ text }) => `- ${text}`)]),
    '',
    verdict,
  ].join('\n');
}

function cellsOf({ date, model, billed, settled, difference, isBeyond, margin }: Compared): readonly string[] {
  return [
    date ?? 'all days',
    model ?? 'all models',
    pair(settled?.requests ?? 0, billed === null ? 0 : billed.requests),
    pair(settled?.prompt ?? 0, billed === null ? 0 : billed.prompt),
    pair(settled?.completion ?? 0, billed === null ? 0 : billed.completion),
    pair(settled === null ? 0 : settled.cost, billed === null ? null : billed.cost, usd),
    usd(settled?.charged ?? 0),
    margin === null ? '-' : usd(margin),
    `${difference === 0 ? '-' : percent(difference)}${isBeyond ? ' !' : ''}`,
  ];
}

/** One figure if both sides are equal. `-` for one that is not known. */
function pair(here: number | null, there: number | null, show: (value: number) => string = String): string {
  if (here === there) return here === null ? '-' : show(here);
  return `${here === null ? '-' : show(here)} / ${there === null ? '-' : show(there)}`;
}

/** Two significant digits, and never 0 % for a difference. */
function percent(part: number): string {
  const value = part * 100;
  return `${value >= 10 ? value.toFixed(0) : Number(value.toPrecision(2))} %`;
}
