import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runClientConformance } from '../../support/run-conformance.ts';
import { CLIENT_SCENARIOS, CLIENT_THROUGH_THE_GATEWAY, expectOnly } from './expected-failures.ts';

const command = `${process.execPath} ${fileURLToPath(new URL('client-command.ts', import.meta.url))}`;

test.each(['2026-07-28', '2025-11-25'] as const)(
  'what the gateway sends to a server passes the scenarios for clients of %s',
  async (specVersion) => {
    const scenarios = CLIENT_SCENARIOS[specVersion];
    const result = await runClientConformance({ command, scenarios, specVersion });
    expectOnly(result, CLIENT_THROUGH_THE_GATEWAY[specVersion]);
    expect(result.scenarios.map(({ name }) => name)).toEqual(scenarios);
  },
);
