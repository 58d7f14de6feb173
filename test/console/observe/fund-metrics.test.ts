import { expect, test } from 'vitest';
import { createMetrics, type FundFigures } from '#observe';

const BASE = 'eip155:8453';
const FIGURES: FundFigures = {
  chains: [
    { network: BASE, answers: true, comparedAt: 30_000, held: 12_500_000n, booked: 12_000_000n, halted: true },
    { network: 'eip155:1', answers: false, comparedAt: 100_000, held: null, booked: null, halted: false },
  ],
  open: [
    { network: BASE, kind: 'deposits', count: 2, oldest: 40_000 },
    { network: BASE, kind: 'unfinal', count: 3, oldest: 90_000 },
    { network: BASE, kind: 'withdrawals', count: 4, oldest: 0 },
  ],
};

const linesOf = async (figures: () => Promise<FundFigures>) => {
  const metrics = createMetrics({ processMetrics: false, now: () => 100_000 });
  metrics.showFunds(figures);
  const text = await metrics.text();
  return text.split('\n').filter((line) => /^tollgate_(treasury|chain|withdrawals|deposits)/.test(line));
};

test('money over chains is shown by chain', async () => {
  let asked = 0;
  const lines = await linesOf(async () => {
    asked += 1;
    return FIGURES;
  });
  expect(lines).toEqual([
    `tollgate_treasury_held_micro_usd{network="${BASE}"} 12500000`,
    `tollgate_treasury_booked_micro_usd{network="${BASE}"} 12000000`,
    `tollgate_treasury_compared_seconds{network="${BASE}"} 70`,
    'tollgate_treasury_compared_seconds{network="eip155:1"} 0',
    `tollgate_chain_answers{network="${BASE}"} 1`,
    'tollgate_chain_answers{network="eip155:1"} 0',
    `tollgate_withdrawals_halted{network="${BASE}"} 1`,
    'tollgate_withdrawals_halted{network="eip155:1"} 0',
    `tollgate_deposits_open{network="${BASE}",kind="unknown"} 2`,
    `tollgate_deposits_open{network="${BASE}",kind="unfinal"} 3`,
    'tollgate_deposits_open{network="eip155:1",kind="unknown"} 0',
    'tollgate_deposits_open{network="eip155:1",kind="unfinal"} 0',
    `tollgate_deposits_oldest_seconds{network="${BASE}",kind="unknown"} 60`,
    `tollgate_deposits_oldest_seconds{network="${BASE}",kind="unfinal"} 10`,
    'tollgate_deposits_oldest_seconds{network="eip155:1",kind="unknown"} 0',
    'tollgate_deposits_oldest_seconds{network="eip155:1",kind="unfinal"} 0',
    `tollgate_withdrawals_open{network="${BASE}"} 4`,
    'tollgate_withdrawals_open{network="eip155:1"} 0',
    `tollgate_withdrawals_oldest_seconds{network="${BASE}"} 100`,
    'tollgate_withdrawals_oldest_seconds{network="eip155:1"} 0',
  ]);
  expect(asked).toBe(1);
});

test('each scrape asks anew, and one without an answer leaves the figures out', async () => {
  const answers = [
    Promise.resolve(FIGURES),
    Promise.reject(new Error('the database is away')),
    Promise.resolve({ ...FIGURES, open: [] }),
  ];
  answers[1]!.catch(() => {});
  const metrics = createMetrics({ processMetrics: false, now: () => 0 });
  metrics.showFunds(() => answers.shift()!);
  expect(await metrics.text()).toContain(`tollgate_withdrawals_open{network="${BASE}"} 4`);
  await new Promise((resolve) => setImmediate(resolve));
  expect(await metrics.text()).not.toContain('tollgate_withdrawals_open{');
  await new Promise((resolve) => setImmediate(resolve));
  expect(await metrics.text()).toContain(`tollgate_withdrawals_open{network="${BASE}"} 0`);
});

test('a gateway without chains has none of them', async () => {
  expect(await createMetrics({ processMetrics: false }).text()).not.toMatch(
    /tollgate_(treasury|chain_|withdrawals|deposits)/,
  );
});
