import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import type { EndFrame, Frame } from '#billing/amounts';
import { createFree } from '#call/compose';
import type { Call } from '#call';
import { OWN_ACCOUNT, type Caller } from '#accounts';
import { createCallLog, createCallObserver, createLogger, createMetrics } from '#observe';
import { answeredBy, exampleToolCall, exampleTools, logConfig } from './example-call.ts';

const OFFER = exampleTools();
const LABELS = 'gen_ai_request_model="demo/weather",gen_ai_provider_name="Demo"';
/** Without the provider, which the time of a whole request does not have. */
const ASKED = LABELS.replace(/,gen_ai_provider_name=.*/, '');

/** Free calls as they run: what stands in the place of billing, over a handler that ends with `end` or fails. */
function world(logLevel: 'debug' | 'info' = 'debug', style: 'json' | 'text' = 'json') {
  const lines: string[] = [];
  const metrics = createMetrics({ processMetrics: false });
  const { logger } = createLogger(logConfig({ logLevel }), { style, write: (line) => lines.push(line) });
  const observer = createCallObserver([createCallLog(logger), metrics.sink], { now: () => 1_250 });
  return {
    metrics,
    lines,
    logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    async run(method: string, end: EndFrame | Error, read: 'whole' | 'head' = 'whole', caller?: Caller) {
      const handler = createFree(observer)(async function* handle(call: Call): AsyncGenerator<Frame, void, undefined> {
        observer.attemptStarted(call, OFFER, 1_250);
        yield { type: 'head', status: 200, provider: OFFER.provider };
        if (end instanceof Error) throw end;
        yield end;
      });
      const call = exampleToolCall(OFFER, null, { free: method, ...(caller ? { caller } : {}) });
      for await (const frame of handler(call, new AbortController().signal))
        if (read === 'head' || frame.type === 'settled') break;
    },
  };
}

describe('a call that is free', () => {
  it('is counted by its method, and neither as a lock nor as money', async () => {
    const { metrics, run } = world();
    await run('tools/list', answeredBy(OFFER, null));
    await run('tools/list', answeredBy(OFFER, null));
    await run('resources/read', answeredBy(OFFER, 'error -32002'));
    await run('prompts/list', new GatewayError('provider_unavailable', 'away')).catch(() => {});
    await run('subscriptions/listen', answeredBy(OFFER, 'cancelled'));
    const text = await metrics.text();
    const server = 'mcp_server_operation_duration_seconds_count';
    for (const line of [
      `${server}{mcp_method_name="tools/list",${ASKED}} 2`,
      `${server}{mcp_method_name="resources/read",${ASKED},error_type="-32002",rpc_response_status_code="-32002"} 1`,
      `${server}{mcp_method_name="prompts/list",${ASKED},error_type="provider_unavailable"} 1`,
      // Leaving is how a client stops to listen.
      `${server}{mcp_method_name="subscriptions/listen",${ASKED}} 1`,
      `mcp_client_operation_duration_seconds_count{mcp_method_name="tools/list",${LABELS}} 2`,
      'tollgate_calls_in_flight 0',
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).not.toMatch(/^(gen_ai_client_operation|tollgate_charged|tollgate_fees|tollgate_calls_total).*\{/m);
    expect(text).not.toContain('gen_ai_tool_name');
  });

  it('that the gateway makes for itself is a request to the provider, and none of a client', async () => {
    const { metrics, run } = world();
    await run('tools/list', answeredBy(OFFER, null), 'whole', { account: OWN_ACCOUNT, key: null, wallet: null });
    const text = await metrics.text();
    expect(text).toContain(`mcp_client_operation_duration_seconds_count{mcp_method_name="tools/list",${LABELS}} 1`);
    expect(text).not.toContain('mcp_server_operation_duration_seconds_count');
  });

  it('is no billed call while it runs', async () => {
    const { metrics } = world();
    metrics.sink.started?.(exampleToolCall(OFFER, null, { free: 'subscriptions/listen' }));
    const text = await metrics.text();
    expect(text).toContain('tollgate_calls_in_flight 0\n');
    expect(text).toContain('tollgate_locks_held 0\n');
  });

  it('is logged at debug, with its method and without money', async () => {
    const { run, logged } = world();
    await run('tools/list', answeredBy(OFFER, null));
    expect(logged()).toEqual([
      {
        level: 'debug',
        time: expect.any(Number),
        msg: 'free call',
        request_id: 'req-1',
        generation_id: 'gen-1',
        account: 'tollgate:local:dev',
        key: 'laptop',
        primitive: 'tool',
        service: 'demo/weather',
        method: 'tools/list',
        provider: 'Demo',
        stream: true,
        status: 200,
        error: null,
        attempts: 1,
        first_byte_ms: null,
        duration_ms: 250,
      },
    ]);
    const quiet = world('info');
    await quiet.run('tools/list', answeredBy(OFFER, null));
    expect(quiet.logged()).toEqual([]);
  });

  it('says when its client left', async () => {
    const { run, logged } = world();
    await run('subscriptions/listen', answeredBy(OFFER, 'cancelled'));
    await run('tools/list', answeredBy(OFFER, null), 'head');
    await run('tools/list', answeredBy(OFFER, null));
    expect(logged().map((line) => line['client_gone'])).toEqual([true, true, undefined]);
  });

  it('is one line for people', async () => {
    const { run, lines } = world('debug', 'text');
    await run('tools/list', answeredBy(OFFER, null));
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d {2}200 {2}demo\/weather tools\/list {2}by Demo {2}free {2}250 ms\n$/);
  });
});
