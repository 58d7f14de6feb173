import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import type { Call } from '#call';
import { createCallObserver, createTracer } from '#observe';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';
import { attribute, attributesOf, spansOf, startReceiver } from './otlp-receiver.ts';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('traces', () => {
  it('are sent as OTLP with the attributes of the GenAI conventions, below the span of the caller', async () => {
    const { endpoint, posts } = await startReceiver();
    const tracer = await createTracer({ otlpEndpoint: endpoint }, { version: '1.2.3' });
    const startedAt = Date.now() - 500;
    const observer = createCallObserver([tracer.sink], { now: () => startedAt + 250 });
    const call = exampleCall({ startedAt, begunAt: startedAt, traceparent: PARENT });
    observer.started(call);
    const headers = observer.upstreamHeaders(call);
    observer.firstByte(call, startedAt + 250);
    observer.resolved(call, settledBy(exampleOffer()));
    await tracer.close();

    expect(posts.map(({ path }) => path)).toEqual(['POST /v1/traces']);
    const resource = posts[0]!.body.resourceSpans[0]!.resource.attributes;
    expect(resource).toContainEqual({ key: 'service.name', value: { stringValue: 'tollgate' } });
    const [span] = spansOf(posts);
    expect(span).toMatchObject({
      name: 'chat demo/chat',
      kind: 3,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      parentSpanId: '00f067aa0ba902b7',
      status: { code: 0 },
    });
    expect(headers).toEqual({ traceparent: `00-4bf92f3577b34da6a3ce929d0e0e4736-${span!.spanId}-01` });
    expect(Number((BigInt(span!.endTimeUnixNano) - BigInt(span!.startTimeUnixNano)) / 1_000_000n)).toBe(250);
    expect(attributesOf(span!)).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'demo/chat',
      'gen_ai.response.model': 'sage',
      'gen_ai.provider.name': 'Demo',
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.usage.output_tokens': 34,
      'tollgate.cost_micro_usd': 57,
      'tollgate.generation.id': 'gen-1',
      'http.response.status_code': 200,
    });
  });

  it('mark a failed call with the type of its error', async () => {
    const { endpoint, posts } = await startReceiver();
    const tracer = await createTracer({ otlpEndpoint: endpoint });
    const observer = createCallObserver([tracer.sink], { now: Date.now });
    const call = exampleCall({ startedAt: Date.now() });
    observer.started(call);
    observer.failed(call, new GatewayError('insufficient_balance', 'Insufficient balance'));
    await tracer.close();
    const [span] = spansOf(posts);
    expect(span!.status).toEqual({ code: 2, message: 'Insufficient balance' });
    expect(attribute(span!, 'error.type')).toBe('insufficient_balance');
    expect(span!.parentSpanId).toBeUndefined();
  });

  it('are not kept for calls that the caller does not sample', async () => {
    const { endpoint, posts } = await startReceiver();
    const tracer = await createTracer({ otlpEndpoint: endpoint });
    const observer = createCallObserver([tracer.sink], { now: Date.now });
    const call = exampleCall({ traceparent: PARENT.replace(/01$/, '00') });
    observer.started(call);
    expect(observer.upstreamHeaders(call)?.['traceparent']).toMatch(
      /^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/,
    );
    observer.resolved(call, settledBy(exampleOffer()));
    await tracer.close();
    expect(posts).toEqual([]);
  });

  it.each([
    [PARENT, { traceparent: PARENT }],
    ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nx-evil: 1', null],
    [`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, null],
    [`ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`, null],
    [`${PARENT}-more`, null],
    [`cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more`, { traceparent: PARENT }],
    [undefined, null],
    [null, null],
  ])('without an endpoint pass a valid traceparent on and drop others: %s', async (traceparent, expected) => {
    const tracer = await createTracer({ otlpEndpoint: null });
    const call: Call = exampleCall(traceparent === undefined ? {} : { traceparent });
    expect(tracer.sink.upstreamHeaders?.(call)).toEqual(expected);
    await tracer.close();
  });

  it('that nobody receives are told once a batch, and do not hold up the end', async () => {
    const { endpoint } = await startReceiver(400);
    const errors: Error[] = [];
    const tracer = await createTracer({ otlpEndpoint: `${endpoint}/` }, { onError: (error) => errors.push(error) });
    const observer = createCallObserver([tracer.sink], { now: Date.now });
    for (const id of ['gen-1', 'gen-2']) {
      const call = exampleCall({ id, startedAt: Date.now() });
      observer.started(call);
      observer.resolved(call, settledBy(exampleOffer()));
    }
    await tracer.close();
    expect(errors).toHaveLength(1);
  });
});
