import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import { countAnswers, createCallObserver, createMetrics, metricsRoutes } from '#observe';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';

const REQUEST = 'gen_ai_operation_name="chat",gen_ai_request_model="demo/chat"';
const LABELS = 'gen_ai_operation_name="chat",gen_ai_request_model="demo/chat",gen_ai_provider_name="Demo"';

describe('metrics', () => {
  it('count a settled call under the names of the GenAI conventions', async () => {
    const metrics = createMetrics({ processMetrics: false });
    let at = 1_000;
    const observer = createCallObserver([metrics.sink], { now: () => at });
    const call = exampleCall();
    observer.started(call);
    observer.attemptStarted(call, exampleOffer(), at);
    expect(await metrics.text()).toContain('tollgate_calls_in_flight 1');
    expect(await metrics.text()).toContain('tollgate_locks_held 1');
    at = 1_030;
    observer.firstByte(call, at);
    at = 1_500;
    observer.flagged(call, exampleOffer(), { flags: ['usage_implausible'] }, null);
    observer.resolved(call, settledBy(exampleOffer()));
    const text = await metrics.text();
    for (const line of [
      `gen_ai_client_operation_duration_seconds_sum{${LABELS}} 0.5`,
      `gen_ai_client_operation_duration_seconds_count{${LABELS}} 1`,
      `gen_ai_server_request_duration_seconds_sum{${REQUEST}} 0.5`,
      `gen_ai_client_token_usage_sum{${LABELS},gen_ai_token_type="input"} 12`,
      `gen_ai_client_token_usage_sum{${LABELS},gen_ai_token_type="output"} 34`,
      `gen_ai_server_time_to_first_token_seconds_sum{${LABELS}} 0.03`,
      `tollgate_charged_micro_usd_total{${LABELS}} 57`,
      `tollgate_fees_micro_usd_total{${LABELS}} 2`,
      `tollgate_provider_flags_total{${LABELS},flag="usage_implausible"} 1`,
      'tollgate_calls_total{lock="settled"} 1',
      'tollgate_calls_in_flight 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });

  it('tell errors by their code, and failed attempts by whose fault they were', async () => {
    const metrics = createMetrics({ processMetrics: false });
    const observer = createCallObserver([metrics.sink], { now: () => 1_500 });
    const call = exampleCall();
    observer.started(call);
    observer.attemptFailed(
      call,
      exampleOffer(),
      new UpstreamFailure('502', { status: 502, retryable: true, attributedTo: 'provider' }),
    );
    observer.failed(call, new GatewayError('provider_unavailable', 'Provider Demo failed'));
    const text = await metrics.text();
    expect(text).toContain(
      `gen_ai_server_request_duration_seconds_count{${REQUEST},error_type="provider_unavailable"} 1`,
    );
    expect(text).toContain(`gen_ai_client_operation_duration_seconds_count{${LABELS},error_type="502"} 1`);
    expect(text).toContain(`tollgate_attempts_failed_total{${LABELS},blame="provider"} 1`);
    expect(text).not.toContain(`gen_ai_client_operation_duration_seconds_count{${LABELS}} 1`);
  });

  it('book the wait for a provider that hangs at this provider, and the whole time at the call', async () => {
    const metrics = createMetrics({ processMetrics: false });
    let at = 1_000;
    const observer = createCallObserver([metrics.sink], { now: () => at });
    const [hung, quick] = [exampleOffer('demo/chat', 'Hung'), exampleOffer('demo/chat', 'Quick')];
    const call = exampleCall({
      candidates: [hung, quick].map((offer) => ({ offer, price: offer.price, estimate: 1n })),
    });
    observer.started(call);
    observer.attemptStarted(call, hung, at);
    at = 6_000;
    const late = { retryable: true, attributedTo: 'provider', timedOut: true } as const;
    observer.attemptFailed(call, hung, new UpstreamFailure('its answer did not begin in time', late));
    observer.attemptStarted(call, quick, at);
    at = 6_250;
    observer.firstByte(call, at);
    at = 6_500;
    observer.resolved(call, settledBy(quick));
    const lines = (await metrics.text()).split('\n');
    const of = (provider: string) => `${REQUEST},gen_ai_provider_name="${provider}"`;
    for (const line of [
      `gen_ai_client_operation_duration_seconds_sum{${of('Hung')},error_type="timeout"} 5`,
      `gen_ai_client_operation_duration_seconds_sum{${of('Quick')}} 0.5`,
      `gen_ai_server_time_to_first_token_seconds_sum{${of('Quick')}} 0.25`,
      `gen_ai_server_request_duration_seconds_sum{${REQUEST}} 5.5`,
    ])
      expect(lines).toContain(line);
  });

  it('have a bounded number of series, whatever consumers and catalogues name', async () => {
    const metrics = createMetrics({ processMetrics: false, isOwn: (id) => id === exampleOffer('own').id });
    const observer = createCallObserver([metrics.sink], { now: () => 1_500 });
    for (let index = 0; index < 2_100; index++) {
      const offer = exampleOffer(index === 2_099 ? 'own' : `model-${index}`);
      const call = exampleCall({
        id: `gen-${index}`,
        service: `asked-for-${index}:floor`,
        candidates: [{ offer, price: offer.price, estimate: 1n }],
      });
      observer.started(call);
      observer.resolved(call, settledBy(offer));
    }
    const text = await metrics.text();
    expect(text).not.toContain('asked-for');
    expect(text.match(/^tollgate_charged_micro_usd_total\{/gm)).toHaveLength(52);
    expect(text).toContain('gen_ai_request_model="other"');
    // The operator's own have theirs, however many strangers came first.
    expect(text).toMatch(/^tollgate_charged_micro_usd_total\{.*gen_ai_request_model="own"/m);
  });

  it('show the ledger, the limits, and the locks of all gateways; and -1 while the database is silent', async () => {
    let held = () => Promise.resolve(7);
    const metrics = createMetrics({ processMetrics: false, locksHeld: () => held() });
    metrics.ledgerBatch({ size: 3, durationMs: 2 });
    metrics.rateLimited('tokens');
    const text = await metrics.text();
    expect(text).toContain('tollgate_ledger_batch_size_sum 3');
    expect(text).toContain('tollgate_ledger_batch_duration_seconds_sum 0.002');
    expect(text).toContain('tollgate_rate_limited_total{of="tokens"} 1');
    expect(text).toContain('tollgate_locks_held 7');
    held = () => Promise.reject(new Error('gone'));
    expect(await metrics.text()).toContain('tollgate_locks_held -1');
  });

  it('are served at /metrics with the answers counted by route pattern', async () => {
    const metrics = createMetrics();
    const app = Fastify();
    countAnswers(app, metrics);
    await app.register(metricsRoutes({ metrics, access: 'open', gate: async () => {} }));
    app.get('/things/:id', async () => 'ok');
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    try {
      for (const path of ['/things/1', '/things/2', '/nowhere/3']) await (await fetch(url + path)).text();
      const response = await fetch(`${url}/metrics`);
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      const text = await response.text();
      expect(text).toContain('tollgate_http_requests_total{method="GET",route="/things/:id",status="200"} 2');
      expect(text).toContain('tollgate_http_requests_total{method="GET",route="unmatched",status="404"} 1');
      expect(text).toContain('process_resident_memory_bytes');
    } finally {
      await app.close();
    }
  });
});
