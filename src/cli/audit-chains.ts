import type { AuditedChain, ChainAudit } from '#pages';
import { facts, table, type Paint } from './terminal.ts';

/** Amounts in the form of JSON: numbers of micro-USD. */
type InNumbers<T> = {
  readonly [K in keyof T]: T[K] extends bigint | null ? (null extends T[K] ? number | null : number) : T[K];
};

/** The comparison with the treasuries in the form of the admin API. */
export interface ChainAuditView extends InNumbers<Omit<ChainAudit, 'chains' | 'ok'>> {
  readonly ok: boolean | null;
  readonly chains: readonly (InNumbers<Omit<AuditedChain, 'ok' | 'open'>> & Pick<AuditedChain, 'ok' | 'open'>)[];
}

const HEADINGS = ['chain', 'owed', 'held', 'booked', 'difference', 'unfinal', 'coming', 'going', 'compared'] as const;
const AMOUNTS = ['owed', 'held', 'booked', 'difference', 'unfinal', 'coming', 'going'] as const;

/** Turns a report that was made here into the form that the admin API sends. */
export const chainAuditView = (audit: ChainAudit): ChainAuditView =>
  JSON.parse(
    JSON.stringify(audit, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  ) as ChainAuditView;

/** The comparison of the treasuries with the books, as text for people. */
export function showChains({ ok, chains, ...totals }: ChainAuditView, paint: Paint): string {
  if (chains.length === 0)
    return 'No chain has a treasury in this configuration: there is nothing to compare. Name its file with --config.';
  const rows = chains.map((chain) => [
    chain.network,
    usd(chain.owed),
    usd(chain.held),
    usd(chain.booked),
    chain.difference === null ? '?' : chain.difference > 0 ? `+${usd(chain.difference)}` : usd(chain.difference),
    String(chain.open.unfinal),
    String(chain.open.deposits),
    String(chain.open.withdrawals),
    chain.comparedAt === null ? 'never' : new Date(chain.comparedAt).toISOString().replace(/\.\d+Z$/, 'Z'),
  ]);
  const notes = chains.flatMap(({ network, halted, error, ok }) => [
    ...(halted === null ? [] : [`${paint('red', '✗')} ${network}: withdrawals are stopped: ${halted}`]),
    ...(error === null ? [] : [`${paint('yellow', '!')} ${network}: could not be compared: ${error}`]),
    ...(halted === null && ok === false ? [`${paint('red', '✗')} ${network}: the treasury and the books differ`] : []),
  ]);
  const { suspense, fees, losses, transit, operator } = totals;
  const figures = facts(
    [
      ['suspense', `${usd(suspense)} USD came in and do not belong to an account yet`],
      ['fees', `${usd(fees)} USD`],
      ...(losses > 0
        ? [['losses', `${usd(losses)} USD were taken back by a chain after they were spent: to be made good`] as const]
        : []),
      ...(transit > 0
        ? [['moving', `${usd(transit)} USD are on their way from a treasury to another one`] as const]
        : []),
      ...(operator > 0
        ? [
            [
              'by hand',
              `${usd(operator)} USD were credited by the operator, and are held outside of any chain`,
            ] as const,
          ]
        : []),
    ],
    paint,
    '  ',
  );
  const verdict =
    ok === true
      ? paint(['bold', 'green'], 'The treasuries hold what the books say.')
      : ok === false
        ? paint(['bold', 'red'], 'The treasuries and the books differ.')
        : paint(['bold', 'yellow'], 'Not every treasury could be compared.');
  return [
    table(HEADINGS, rows, paint, AMOUNTS),
    ...(notes.length > 0 ? ['', ...notes] : []),
    '',
    figures,
    '',
    verdict,
  ].join('\n');
}

const usd = (micro: number | null): string => (micro === null ? '?' : (micro / 1e6).toFixed(6));
