import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runClientConformance } from '../../support/run-conformance.ts';
import { CLIENT_SCENARIOS, expectOnly } from './expected-failures.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';

/**
 * Each costs the start of two programs, and what is proven is one of the tests': by day only those that ask the
 * most of it.
 */
const HARD = {
  '2026-07-28': ['sep-2322-client-request-state', 'http-custom-headers'],
  '2025-11-25': ['elicitation-sep1034-client-defaults', 'sse-retry'],
};

const command = `${process.execPath} ${fileURLToPath(new URL('client-command.ts', import.meta.url))}`;

test.each(['2026-07-28', '2025-11-25'] as const)(
  'the client program passes the scenarios of %s without a gateway',
  async (specVersion) => {
    const scenarios = (DEEP ? CLIENT_SCENARIOS : HARD)[specVersion];
    const result = await runClientConformance({ command, env: { TOLLGATE_DIRECT: '1' }, scenarios, specVersion });
    expectOnly(result, {});
    expect(result.passed).toEqual(scenarios);
  },
);
