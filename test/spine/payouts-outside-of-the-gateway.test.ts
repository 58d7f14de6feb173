import { expect, test } from 'vitest';
import { startSupplied } from '../console/pages/market/supplied-spine.ts';
import { model } from '../gateway/network/registry/registry-world.ts';
import { ask } from '../support/spine.ts';

// The operator pays earnings by bank transfer and books it. The books, the provider's pages and the admin log know it.

interface Payout {
  readonly reference: string;
  readonly amount_usd: string;
  readonly note: string;
  readonly undone_reason: string | null;
}
interface Booked {
  readonly data: { readonly duplicate: boolean; readonly earnings_micro_usdc: number };
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null };
}

const says = { reference: 'SEPA-117', note: 'November' };

test('a payout is booked once, never above the earnings, and can be taken back', async () => {
  const { spine, supply } = await startSupplied('[payments]\npayouts = "by bank transfer each month"\n');
  const { id, wallet, page, service } = await supply(model('paid/model', { providerName: 'Paid', price: 1000 }));
  const call = await spine.post('/chat/completions', ask('hello !tokens:3', { model: `${id}:${service.name}` }));
  await call.text();
  expect(call.status).toBe(200);
  const earnings = async () => {
    const { available_micro_usdc, total_earned_micro_usdc, payout_terms } = await page<{
      readonly available_micro_usdc: number;
      readonly total_earned_micro_usdc: number;
      readonly payout_terms: { readonly networks: readonly string[]; readonly summary: string };
    }>('/earnings');
    return { left: available_micro_usdc, total: total_earned_micro_usdc, payout_terms };
  };
  const admin = async <T = Booked>(method: string, path: string, body?: object): Promise<T & { status: number }> => {
    const response = await fetch(`${spine.origin}/admin/v1/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${spine.adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { ...((await response.json()) as T), status: response.status };
  };
  const of = `providers/${encodeURIComponent(wallet.accountId)}/payouts`;

  const { total, payout_terms } = await earnings();
  expect(payout_terms).toMatchObject({ networks: [], text: 'by bank transfer each month' });
  expect(payout_terms.summary).toMatch(/over no chain.*The operator says about payouts: by bank transfer/);

  const tooMuch = await admin('POST', of, { amount_micro_usdc: total + 1, ...says });
  expect([tooMuch.status, tooMuch.error.type]).toEqual([422, 'unprocessable']);
  expect(tooMuch.error.message).toMatch(/of earnings left/);

  const body = { amount_micro_usdc: total - 1, ...says };
  const first = await admin('POST', of, body);
  expect(first).toMatchObject({ status: 200, data: { duplicate: false, earnings_micro_usdc: 1 } });
  const copied = { ...body, reference: ` ${says.reference}\n` };
  const repeated = await Promise.all([
    admin('POST', of, copied),
    admin('POST', of, body),
    admin('POST', `providers/${id}/payouts`, body),
  ]);
  for (const each of repeated)
    expect(each).toMatchObject({ status: 200, data: { duplicate: true, earnings_micro_usdc: 1 } });
  expect(await admin('POST', of, { amount_micro_usdc: 1, ...says })).toMatchObject({
    status: 409,
    error: { type: 'idempotency_conflict', param: 'reference' },
  });
  expect(await earnings()).toMatchObject({ left: 1, total });
  const seen = await page<{ readonly data: readonly Payout[] }>('/payouts');
  expect(seen.data).toEqual([
    expect.objectContaining({ ...says, amount_micro_usdc: total - 1, undone_at: null }) as object,
  ]);

  const undo = { reference: says.reference, reason: 'the bank returned it' };
  expect(await admin('POST', `${of}/undo`, undo)).toMatchObject({
    status: 200,
    data: { duplicate: false, earnings_micro_usdc: total },
  });
  expect(await admin('POST', `${of}/undo`, undo)).toMatchObject({
    data: { duplicate: true, earnings_micro_usdc: total },
  });
  expect((await admin('POST', of, body)).error.message).toMatch(/was taken back/);
  expect(await earnings()).toMatchObject({ left: total, total });
  const list = await admin<{ readonly data: readonly Payout[] }>('GET', of);
  expect(list.data).toMatchObject([{ reference: says.reference, undone_reason: undo.reason }]);

  for (const [path, status] of [
    ['providers/nobody/payouts', 400],
    [`providers/eip155:0x${'1'.repeat(40)}/payouts`, 404],
  ] as const)
    expect((await admin('POST', path, body)).status).toBe(status);
  expect((await admin('POST', `${of}/undo`, { ...undo, reference: 'other' })).status).toBe(404);

  const log = await admin<{ readonly data: readonly { readonly path: string; readonly body: string }[] }>(
    'GET',
    'audit-log?limit=50',
  );
  expect(log.data.filter(({ path }) => path.endsWith('/undo')).length).toBeGreaterThan(0);
  expect(log.data.some(({ path, body: text }) => path.endsWith('/payouts') && text.includes('SEPA-117'))).toBe(true);
  expect(await spine.faults()).toEqual([]);
});
