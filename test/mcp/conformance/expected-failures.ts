import type { ConformanceResult } from '../../support/conformance-result.ts';
import type { Revision } from '../../support/run-conformance.ts';

/** Names of scenarios with the reason why each fails. A list may only shrink. */
export type Expected = Readonly<Record<string, string>>;

/** The client's era, then what the server behind the gateway speaks. */
export type Combination = 'modern, both' | 'legacy, both' | 'modern, legacy' | 'legacy, modern';

const UNWRITTEN = 'The tool makes no check of notifications yet, and says so.';
const NO_TASKS = 'A legacy server has no tasks of 2026-07-28.';

/** What fails against the fixture itself. */
export const FIXTURE_ITSELF: Readonly<Record<'modern' | 'legacy', Expected>> = {
  modern: { 'tasks-status-notifications': UNWRITTEN },
  legacy: {},
};

const ONE_STREAM =
  'Where a server closes the stream of a call to be polled, the gateway goes on with it: its client sees one stream, which is not closed.';

/** What fails through the gateway. Where both sides speak one era, nothing that does not fail without it. */
export const THROUGH_THE_GATEWAY: Readonly<Record<Combination, Expected>> = {
  'modern, both': FIXTURE_ITSELF.modern,
  'legacy, both': {},
  'modern, legacy': {
    ...FIXTURE_ITSELF.modern,
    'tasks-lifecycle': NO_TASKS,
    'tasks-capability-negotiation': NO_TASKS,
    'tasks-wire-fields': NO_TASKS,
    'tasks-request-state-removal': NO_TASKS,
    'tasks-mrtr-input': NO_TASKS,
    'tasks-request-headers': NO_TASKS,
    'tasks-dispatch-and-envelope': NO_TASKS,
    'tasks-required-task-error': NO_TASKS,
    'tasks-mrtr-composition': NO_TASKS,
    'server-stateless':
      'A legacy server does not refuse a call for what the client cannot do: it asks in the middle of it, and is told then.',
    'input-required-result-basic-elicitation':
      'A modern server names what it asks; a legacy one has no such names, and the gateway makes them up.',
  },
  'legacy, modern': { 'server-sse-polling': ONE_STREAM },
};

/** What the tool asks of clients that have nothing to do with OAuth. */
export const CLIENT_SCENARIOS: Readonly<Record<Revision, readonly string[]>> = {
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
  '2025-11-25': [
    'initialize',
    'tools_call',
    'elicitation-sep1034-client-defaults',
    'sse-retry',
    'json-schema-2020-12-preservation',
  ],
};

/** What the tool finds wrong with the gateway as a client. */
export const CLIENT_THROUGH_THE_GATEWAY: Readonly<Record<Revision, Expected>> = { '2026-07-28': {}, '2025-11-25': {} };

/** Throws when a scenario fails that is not on the list, and when one passes that is. */
export function expectOnly(result: ConformanceResult, expected: Expected): void {
  const surprises = result.failed.filter(({ name }) => !Object.hasOwn(expected, name));
  const stale = result.passed.filter((name) => Object.hasOwn(expected, name));
  const unknown = Object.keys(expected).filter((name) => !result.scenarios.some((scenario) => scenario.name === name));
  if (surprises.length + stale.length + unknown.length === 0) return;
  const lines = surprises.flatMap(({ name, scored, checks }) => [
    `${name} failed${scored ? '' : ' (not scored)'}${checks.some((check) => check.status === 'FAILURE') ? '' : ': no check of it was made'}`,
    ...checks
      .filter((check) => check.status === 'FAILURE')
      .map((check) => `  ${check.id}: ${check.errorMessage ?? 'no message'}`),
  ]);
  lines.push(
    ...stale.map((name) => `${name} passes: take it off the list`),
    ...unknown.map((name) => `${name} did not run: take it off the list`),
  );
  throw new Error(lines.join('\n'));
}

/**
 * Checks that did not fail a scenario and are not in order, as `scenario: check`: what a server should do and does not.
 */
export function warningsOf({ scenarios }: ConformanceResult): string[] {
  return scenarios.flatMap(({ name, passed, checks }) =>
    passed
      ? checks.filter((check) => check.status !== 'SUCCESS').map((check) => `${name}: ${check.id} ${check.status}`)
      : [],
  );
}
