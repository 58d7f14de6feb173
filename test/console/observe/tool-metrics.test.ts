import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import type { CallObserver } from '#call';
import type { Offer } from '#catalog';
import { createCallObserver, createMetrics } from '#observe';
import { answeredBy, exampleToolCall, exampleTools, settledBy } from './example-call.ts';

const SERVICE = 'gen_ai_request_model="demo/weather",gen_ai_provider_name="Demo"';
const CALL = `mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",${SERVICE}`;
/** Without the provider, which the time of a whole request does not have. */
const REQUEST = CALL.replace(/,gen_ai_provider_name=.*/, '');
const DURATION = 'mcp_server_operation_duration_seconds';

function world() {
  const clock = { now: 1_000 };
  const metrics = createMetrics({ processMetrics: false });
  const observer = createCallObserver([metrics.sink], { now: () => clock.now });
  return { clock, metrics, observer, lines: async () => (await metrics.text()).split('\n') };
}

let calls = 0;
/** A call that is answered with `reason`, and settled at once. */
function call(observer: CallObserver, offer: Offer, tool: string, reason: string): void {
  const one = exampleToolCall(offer, tool, { id: `gen-${(calls += 1)}` });
  observer.started(one);
  observer.attemptStarted(one, offer, one.begunAt);
  const paid = reason === 'complete';
  const settlement = { charged: paid ? 57n : 0n, fee: paid ? 2n : 0n, drawn: 0n, shortfall: 0n };
  observer.resolved(
    one,
    settledBy(offer, {
      state: reason === 'input_required' ? 'pending' : 'settled',
      settlement,
      end: answeredBy(offer, reason),
    }),
  );
}

describe('metrics of tools', () => {
  it('tell of each tool how long it took and what it earned, and of the provider how long it took', async () => {
    const { clock, observer, lines } = world();
    const offer = exampleTools();
    const one = exampleToolCall(offer, 'forecast');
    observer.started(one);
    clock.now = 1_100;
    observer.attemptStarted(one, offer, clock.now);
    clock.now = 1_500;
    observer.resolved(one, settledBy(offer, { end: answeredBy(offer, 'complete', 400) }));
    expect(await lines()).toEqual(
      expect.arrayContaining([
        `${DURATION}_sum{${REQUEST},gen_ai_tool_name="forecast"} 0.5`,
        `${DURATION}_bucket{le="0.2",${REQUEST},gen_ai_tool_name="forecast"} 0`,
        `${DURATION}_bucket{le="300",${REQUEST},gen_ai_tool_name="forecast"} 1`,
        `mcp_client_operation_duration_seconds_sum{${CALL}} 0.3`,
        `tollgate_charged_micro_usd_total{gen_ai_operation_name="execute_tool",${SERVICE},gen_ai_tool_name="forecast"} 57`,
        `tollgate_fees_micro_usd_total{gen_ai_operation_name="execute_tool",${SERVICE},gen_ai_tool_name="forecast"} 2`,
        `gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",${SERVICE}} 1`,
      ]),
    );
  });

  it('book the wait for a provider that hangs at this provider, and the whole time at none', async () => {
    const { clock, observer, lines } = world();
    const [hung, quick] = ['Hung', 'Quick'].map((provider) => exampleTools('demo/weather', provider)) as [Offer, Offer];
    const one = exampleToolCall(hung, 'forecast', {
      candidates: [hung, quick].map((offer) => ({ offer, price: offer.price, estimate: 1n })),
    });
    observer.started(one);
    observer.attemptStarted(one, hung, clock.now);
    clock.now += 5_000;
    const late = { retryable: true, attributedTo: 'provider', timedOut: true } as const;
    observer.attemptFailed(one, hung, new UpstreamFailure('its answer did not begin in time', late));
    observer.attemptStarted(one, quick, clock.now);
    clock.now += 500;
    observer.resolved(one, settledBy(quick, { end: answeredBy(quick, 'complete', 5_500) }));
    const at = (provider: string) => CALL.replace('"Demo"', `"${provider}"`);
    expect(await lines()).toEqual(
      expect.arrayContaining([
        `mcp_client_operation_duration_seconds_sum{${at('Hung')},error_type="timeout"} 5`,
        `mcp_client_operation_duration_seconds_sum{${at('Quick')}} 0.5`,
        `${DURATION}_sum{${REQUEST},gen_ai_tool_name="forecast"} 5.5`,
        `${DURATION}_count{${REQUEST},gen_ai_tool_name="forecast"} 1`,
      ]),
    );
  });

  it('tell errors of a tool by their type', async () => {
    const { observer, lines } = world();
    const offer = exampleTools();
    for (const reason of ['complete', 'isError', 'error -32602', 'error -31999', 'error 1e21'])
      call(observer, offer, 'forecast', reason);
    const refused = exampleToolCall(offer, 'forecast');
    observer.started(refused);
    observer.failed(refused, new GatewayError('insufficient_balance', 'no money'));
    const broken = exampleToolCall(offer, 'forecast', { id: 'gen-broken' });
    observer.started(broken);
    observer.attemptStarted(broken, offer, broken.begunAt);
    observer.attemptFailed(
      broken,
      offer,
      new UpstreamFailure('away', { retryable: true, attributedTo: 'provider', unsent: true }),
    );
    observer.attemptStarted(broken, offer, broken.begunAt);
    observer.attemptFailed(
      broken,
      offer,
      new UpstreamFailure('502', { status: 502, retryable: true, attributedTo: 'provider' }),
    );
    observer.resolved(
      broken,
      settledBy(offer, { state: 'released', end: null, error: new GatewayError('provider_unavailable', 'broken') }),
    );
    const text = await lines();
    const count = (labels: string) =>
      text.find((line) => line.startsWith(`${DURATION}_count{${REQUEST},gen_ai_tool_name="forecast"${labels}} `));
    for (const [labels, times] of [
      ['', 1],
      [',error_type="tool_error"', 1],
      [',error_type="-32602",rpc_response_status_code="-32602"', 1],
      // A code that nothing names, and one that is no code.
      [',error_type="_OTHER"', 2],
      [',error_type="insufficient_balance"', 1],
      [',error_type="provider_unavailable"', 1],
    ] as const)
      expect(count(labels), labels).toBe(`${DURATION}_count{${REQUEST},gen_ai_tool_name="forecast"${labels}} ${times}`);
    expect(text).toContain(`mcp_client_operation_duration_seconds_count{${CALL},error_type="unreachable"} 1`);
    expect(text).toContain(`mcp_client_operation_duration_seconds_count{${CALL},error_type="502"} 1`);
    expect(text).toContain(`mcp_client_operation_duration_seconds_count{${CALL},error_type="tool_error"} 1`);
  });

  it('have no series of a name that only a consumer knows', async () => {
    const { observer, lines, metrics } = world();
    const offer = exampleTools();
    for (let index = 0; index < 50; index++)
      call(observer, offer, `invented-${index}`, index % 2 === 0 ? 'isError' : 'error -32602');
    call(observer, offer, 'x'.repeat(129), 'complete');
    // What the provider prices by itself is known before it has answered; what waits for input is there.
    call(observer, offer, 'dear', 'isError');
    call(observer, offer, 'asks', 'input_required');
    expect(await metrics.text()).not.toMatch(/invented|xxx/);
    const text = await lines();
    expect(text).toContain(`${DURATION}_count{${REQUEST},gen_ai_tool_name="other",error_type="tool_error"} 25`);
    expect(text).toContain(
      `tollgate_charged_micro_usd_total{gen_ai_operation_name="execute_tool",${SERVICE},gen_ai_tool_name="other"} 57`,
    );
    expect(text).toContain(`${DURATION}_count{${REQUEST},gen_ai_tool_name="dear",error_type="tool_error"} 1`);
    expect(text).toContain(`${DURATION}_count{${REQUEST},gen_ai_tool_name="asks"} 1`);
    expect(text).toContain('tollgate_calls_total{lock="pending"} 1');
  });

  it('know the tools that a server lists, though it never served them', async () => {
    const metrics = createMetrics({ processMetrics: false });
    const observer = createCallObserver([metrics.sink], { now: () => 1_500 });
    observer.readOperations((_offer, operation) => operation === 'listed');
    for (const tool of ['listed', 'invented']) call(observer, exampleTools(), tool, 'isError');
    const text = (await metrics.text()).split('\n');
    expect(text).toContain(`${DURATION}_count{${REQUEST},gen_ai_tool_name="listed",error_type="tool_error"} 1`);
    expect(text).toContain(`${DURATION}_count{${REQUEST},gen_ai_tool_name="other",error_type="tool_error"} 1`);
  });

  it('have a bounded number of series, however many tools providers name', async () => {
    const { observer, lines } = world();
    for (let service = 0; service < 10; service++)
      for (let tool = 0; tool < 300; tool++)
        call(observer, exampleTools(`demo/${service}`), `tool-${tool}`, 'complete');
    const text = await lines();
    const charged = text.filter((line) => line.startsWith('tollgate_charged_micro_usd_total{'));
    expect(charged).toHaveLength(101);
    expect(charged.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBe(3_000 * 57);
    expect(charged.at(-1)).toContain(
      'gen_ai_request_model="other",gen_ai_provider_name="other",gen_ai_tool_name="other"',
    );
  });

  it('show what is open, and how long sessions lasted', async () => {
    const open = { sessions: 3, heldCalls: 2, listens: 1 };
    const metrics = createMetrics({ processMetrics: false });
    metrics.show({ mcp: () => open });
    metrics.mcpSessionEnded({ durationMs: 90_000, revision: '2025-11-25', error: null });
    metrics.mcpSessionEnded({ durationMs: 1_000, revision: '2025-11-25', error: 'expired' });
    const text = (await metrics.text()).split('\n');
    expect(text).toEqual(
      expect.arrayContaining([
        'tollgate_mcp_sessions 3',
        'tollgate_mcp_held_calls 2',
        'tollgate_mcp_listens 1',
        'mcp_server_session_duration_seconds_sum{mcp_protocol_version="2025-11-25"} 90',
        'mcp_server_session_duration_seconds_count{mcp_protocol_version="2025-11-25",error_type="expired"} 1',
      ]),
    );
  });
});
