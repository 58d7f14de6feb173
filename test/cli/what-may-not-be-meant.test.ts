import { afterEach, beforeEach, expect, it } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

it('a key for a service that nobody offers is made, with a warning', async () => {
  await place.gateway(['start']);
  const made = await place.run(['key', 'create', 'dev', '--allow', 'nope/model', 'demo/sage', '--json']);
  expect(made.code).toBe(0);
  const warning = 'No service has the name nope/model at the moment. Check the name';
  expect(JSON.parse(made.stdout)).toMatchObject({
    data: { allowed_services: ['nope/model', 'demo/sage'] },
    warnings: [warning],
  });
  const shown = await place.run(['key', 'create', 'dev', '--allow', 'nope/model']);
  expect(shown.output).toContain(`! ${warning}\n`);
  expect(shown.stdout).not.toContain(warning);
  const fine = await place.run(['key', 'create', 'dev', '--allow', 'demo/sage', 'demo/toolbox']);
  expect(fine.output).not.toContain('No service has the name');
});

it('an amount that cannot be meant is refused in the words of the command', async () => {
  await place.run(['account', 'create', 'acme']);
  for (const amount of ['1.1234567', '0', 'abc', '1e3']) {
    const { code, output } = await place.run(['account', 'credit', 'acme', amount]);
    expect.soft(code, amount).toBe(1);
    expect
      .soft(output, amount)
      .toContain(`<usd> is an amount in USD above 0 with at most 6 decimal places, such as 25 or 0.5, not ${amount}`);
    expect.soft(output, amount).not.toContain('amount_usd');
  }
  expect((await place.run(['audit'])).code).toBe(0);
});
