import { describe, expect, it } from 'vitest';
import { UpstreamFailure } from '#wire';
import { OWN_ACCOUNT } from '#accounts';
import type { CallObserver } from '#call';
import { createCallObserver, createTracer } from '#observe';
import { answeredBy, exampleToolCall, exampleTools, settledBy } from './example-call.ts';
import { attribute, attributesOf, durationOf, spansOf, startReceiver, type OtlpSpan } from './otlp-receiver.ts';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const SERVER = 2;
const CLIENT = 3;
const OFFER = exampleTools();

/** When calls start. OpenTelemetry takes small numbers for another clock than the wall's. */
const startedAt = Date.now();

/** What is sent of the calls that `run` makes; the clock begins at their start. */
async function spansThat(run: (observer: CallObserver, clock: { now: number }) => void): Promise<readonly OtlpSpan[]> {
  const { endpoint, posts } = await startReceiver();
  const tracer = await createTracer({ otlpEndpoint: endpoint });
  const clock = { now: startedAt };
  run(createCallObserver([tracer.sink], { now: () => clock.now }), clock);
  await tracer.close();
  return spansOf(posts);
}

const ofKind = (spans: readonly OtlpSpan[], kind: number) => spans.filter((span) => span.kind === kind);

describe('traces of MCP', () => {
  it('have a span for the side of the client and one below it for the side of the provider', async () => {
    const facts = { 'mcp.protocol.version': '2025-11-25', 'mcp.session.id': 'session-1', 'jsonrpc.request.id': '7' };
    let headers: Readonly<Record<string, string>> | null = null;
    const spans = await spansThat((observer, clock) => {
      const call = exampleToolCall(OFFER, 'forecast', {
        startedAt,
        begunAt: startedAt,
        traceparent: PARENT,
        facts: () => facts,
      });
      observer.started(call);
      clock.now = startedAt + 100;
      observer.attemptStarted(call, OFFER, clock.now);
      headers = observer.upstreamHeaders(call);
      clock.now = startedAt + 500;
      observer.resolved(call, settledBy(OFFER, { end: answeredBy(OFFER, 'complete', 400) }));
    });
    expect(spans).toHaveLength(2);
    const [[server], [client]] = [ofKind(spans, SERVER), ofKind(spans, CLIENT)];
    expect(server).toMatchObject({
      name: 'tools/call forecast',
      parentSpanId: '00f067aa0ba902b7',
      status: { code: 0 },
    });
    expect(client).toMatchObject({
      name: 'tools/call forecast',
      traceId: server!.traceId,
      parentSpanId: server!.spanId,
      status: { code: 0 },
    });
    expect(headers).toEqual({ traceparent: `00-${server!.traceId}-${client!.spanId}-01` });
    expect([durationOf(server!), durationOf(client!)]).toEqual([500, 300]);
    const common = {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'forecast',
      'gen_ai.request.model': 'demo/weather',
      'gen_ai.provider.name': 'Demo',
    };
    expect(attributesOf(server!)).toMatchObject({
      ...common,
      ...facts,
      'network.transport': 'tcp',
      'tollgate.cost_micro_usd': 57,
      'tollgate.lock': 'settled',
    });
    // The provider may speak another revision.
    expect(attributesOf(client!)).toEqual(common);
  });

  it('of a free method have its name, and no operation of GenAI', async () => {
    const spans = await spansThat((observer) => {
      const call = exampleToolCall(OFFER, null, { startedAt, begunAt: startedAt, free: 'tools/list' });
      observer.started(call);
      observer.attemptStarted(call, OFFER, startedAt);
      observer.failed(call, null, answeredBy(OFFER, null));
    });
    expect(ofKind(spans, SERVER).map(({ name }) => name)).toEqual(['tools/list']);
    expect(ofKind(spans, CLIENT).map(({ name }) => name)).toEqual(['tools/list']);
    for (const span of spans) {
      expect(attributesOf(span)).toMatchObject({ 'mcp.method.name': 'tools/list' });
      expect(attributesOf(span)).not.toHaveProperty('gen_ai.operation.name');
    }
    expect(attribute(ofKind(spans, SERVER)[0]!, 'tollgate.lock')).toBeUndefined();
  });

  it('of what the gateway asks for itself have no side of a client', async () => {
    const spans = await spansThat((observer) => {
      const call = exampleToolCall(OFFER, null, {
        startedAt,
        begunAt: startedAt,
        free: 'tools/list',
        caller: { account: OWN_ACCOUNT, key: null, wallet: null },
      });
      observer.started(call);
      observer.attemptStarted(call, OFFER, startedAt);
      observer.failed(call, null, answeredBy(OFFER, null));
    });
    expect(spans).toHaveLength(2);
    expect(ofKind(spans, CLIENT)).toHaveLength(1);
    expect(ofKind(spans, SERVER)).toEqual([]);
  });

  it.each([
    ['isError', { 'error.type': 'tool_error' }],
    ['error -32602', { 'error.type': '-32602', 'rpc.response.status_code': '-32602' }],
  ])(
    'that are answered with %s are errors of that type, and have no name that nobody but the consumer knows',
    async (reason, error) => {
      const spans = await spansThat((observer) => {
        const call = exampleToolCall(OFFER, 'invented', { startedAt, begunAt: startedAt });
        observer.started(call);
        observer.attemptStarted(call, OFFER, startedAt);
        observer.resolved(call, settledBy(OFFER, { end: answeredBy(OFFER, reason) }));
      });
      expect(spans).toHaveLength(2);
      for (const span of spans) {
        expect(span).toMatchObject({ name: 'tools/call', status: { code: 2 } });
        expect(attributesOf(span)).toMatchObject({ ...error, 'gen_ai.tool.name': 'invented' });
      }
    },
  );

  it('have a span for each attempt, those that failed with the reason', async () => {
    const twin = exampleTools('demo/weather', 'Twin');
    const spans = await spansThat((observer, clock) => {
      const candidates = [OFFER, twin].map((offer) => ({ offer, price: offer.price, estimate: 1n }));
      const call = exampleToolCall(OFFER, 'forecast', { startedAt, begunAt: startedAt, candidates });
      observer.started(call);
      observer.attemptStarted(call, OFFER, clock.now);
      clock.now = startedAt + 50;
      observer.attemptFailed(
        call,
        OFFER,
        new UpstreamFailure('it is away', { retryable: true, attributedTo: 'provider', unsent: true }),
      );
      observer.attemptStarted(call, twin, clock.now);
      clock.now = startedAt + 200;
      observer.resolved(call, settledBy(twin, { end: answeredBy(twin, 'complete', 150) }));
    });
    const [failed, served] = ofKind(spans, CLIENT);
    expect(failed!.status).toEqual({ code: 2, message: 'it is away' });
    expect(attributesOf(failed!)).toMatchObject({ 'gen_ai.provider.name': 'Demo', 'error.type': 'unreachable' });
    expect(attributesOf(served!)).toMatchObject({ 'gen_ai.provider.name': 'Twin' });
    expect([durationOf(failed!), durationOf(served!)]).toEqual([50, 100]);
    expect(ofKind(spans, SERVER)).toHaveLength(1);
    expect(ofKind(spans, SERVER)[0]!.status.code).toBe(0);
  });

  it('end every span of a call that came to no answer', async () => {
    const spans = await spansThat((observer) => {
      const call = exampleToolCall(OFFER, 'forecast', { startedAt, begunAt: startedAt });
      observer.started(call);
      observer.attemptStarted(call, OFFER, startedAt);
      observer.resolved(call, settledBy(OFFER, { state: 'released', end: null, error: new Error('something broke') }));
    });
    expect(spans).toHaveLength(2);
    for (const kind of [SERVER, CLIENT]) expect(ofKind(spans, kind)[0]!.status.code).toBe(2);
  });
});
