import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makePlace, type Place } from './tollgate.ts';

const CANARY = 'canary9Zx7Qw3Tr5Yu1';
const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

async function listen(
  answer: (path: string, headers: Record<string, unknown>, body: string) => [status: number, body: string],
) {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const [status, text] = answer(request.url!, request.headers, body);
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

it('a call is seen in log, metrics and trace, and no secret is seen anywhere', async () => {
  const upstream: Record<string, unknown>[] = [];
  // A provider that repeats its key in an error the first time, and works the second time.
  const provider = await listen((_path, headers) => {
    upstream.push(headers);
    if (upstream.length === 1)
      return [401, JSON.stringify({ error: { message: `Incorrect API key provided: ${CANARY}-provider` } })];
    const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }];
    return [
      200,
      JSON.stringify({ id: 'x', choices, usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 5 } }),
    ];
  });
  const traces: string[] = [];
  const collector = await listen((path, _headers, body) => {
    traces.push(`${path} ${body}`);
    return [200, '{}'];
  });
  await writeFile(
    join(place.dir, 'tollgate.toml'),
    `[upstream]\ncooldown_ms = 0\n[[models]]\nname = "mine/one"\ndisplay_name = "One"\nprovider_name = "Mine"\n[models.pricing]\nprompt = 1\ncompletion = 1\n` +
      `[models.params]\nmodel = "one"\napi_base = "${provider.url}/v1"\napi_key = "std::env::MINE"\n`,
  );
  try {
    const gateway = await place.gateway(['serve', '--config', 'tollgate.toml'], {
      MINE: `${CANARY}-provider`,
      TOLLGATE_ADMIN_KEY: `${CANARY}-admin-0123456789`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    });
    const { base_url, admin_key } = (await place.read('gateway.json')) as { base_url: string; admin_key: string };
    const admin = { TOLLGATE_ADMIN_KEY: `${CANARY}-admin-0123456789` };
    await place.run(['account', 'create', 'acme'], admin);
    await place.run(['account', 'credit', 'acme', '1'], admin);
    const { key } = JSON.parse((await place.run(['key', 'create', 'acme', '--json'], admin)).stdout) as { key: string };
    const secrets = {
      'payment-signature': `${CANARY}-payment`,
      'x-payment': `${CANARY}-payment`,
      cookie: `${CANARY}-cookie`,
    };
    const body = {
      model: 'mine/one',
      messages: [{ role: 'user', content: `${CANARY}-prompt` }],
      metadata: { team: 'blue', api_key: `${CANARY}-meta` },
    };
    const call = (credential: Record<string, string> = { authorization: `Bearer ${key}` }) =>
      fetch(`${base_url}/api/v1/chat/completions`, {
        method: 'POST',
        headers: { ...secrets, ...credential, traceparent: PARENT, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const failed = await call();
    expect(failed.status).toBe(500);
    const failure = await failed.text();
    const succeeded = await call();
    expect(succeeded.status).toBe(200);
    await succeeded.text();
    const requestOf = (response: Response) => response.headers.get('x-request-id')!;
    const found = await place.run(['call', requestOf(failed), '--account', 'acme'], admin);
    expect(found.stdout).toContain(`call      ${failed.headers.get('x-generation-id')}\n`);
    expect(found.stdout).toMatch(
      /state +released, failed\nstatus +500 provider_unavailable\nerror +Provider Mine failed: it answered with status 401\nfailed +Mine \(mine\/one\) after [\d.]+ s: it answered with status 401\n/,
    );
    const ended = await place.run(['call', 'end', failed.headers.get('x-generation-id')!, '--json'], admin);
    expect([ended.code, ended.output]).toEqual([1, expect.stringContaining('The call has ended already')]);
    const wrong = {
      'x-api-key': `svc-sk-v2-${CANARY}`,
      authorization: `Bearer ${CANARY}`,
      'sign-in-with-x': `${CANARY}-siwx`,
      'x-siwx': `${CANARY}-siwx`,
    };
    for (const [name, value] of Object.entries(wrong)) expect((await call({ [name]: value })).status, name).toBe(401);
    const metrics = await (
      await fetch(`${base_url}/metrics`, { headers: { authorization: `Bearer ${admin_key}` } })
    ).text();
    const listed = await place.run(['calls', 'acme'], admin);
    expect(listed.stdout).toMatch(/USD +ENDED +ERROR\n.*mine\/one +Mine +0\.000004 +200 complete\n/);
    expect(listed.stdout).toMatch(/mine\/one +Mine +0 +500 failed +Provider Mine failed/);
    expect(JSON.parse((await place.run(['calls', 'acme', '--limit', '1', '--json'], admin)).stdout)).toHaveLength(1);
    const month = new Date().toISOString().slice(0, 7);
    const statement = await place.run(['statement', 'acme', month], admin);
    expect(statement).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/opening balance[^]*closing balance/) as string,
    });
    expect(await place.run(['statement', 'acme', '2026-13'], admin)).toMatchObject({ code: 1 });
    const focus = await place.run(['focus', month, '--account', 'acme'], admin);
    expect(focus.stdout).toMatch(/^BilledCost,[^]*\r\n0\.000003,tollgate:local:acme,[^]*mine\/one: Output tokens/);
    expect(await place.run(['focus', '2026-13'], admin)).toMatchObject({
      code: 1,
      output: expect.stringContaining('such as 2026-10') as string,
    });
    gateway.signal('SIGTERM');
    await gateway.exited;
    // Also on the database of a gateway that is stopped.
    expect((await place.run(['focus', month])).stdout).toBe(focus.stdout);
    const shown = await place.run(['call', succeeded.headers.get('x-generation-id')!]);
    for (const [name, value] of [
      ['request', requestOf(succeeded)],
      ['account', 'tollgate:local:acme'],
      ['called', 'model mine/one'],
      ['provider', 'Mine, \\S+'],
      ['state', 'settled, complete'],
      ['flags', 'usage_implausible'],
      ['claimed', '5 total, at most 4 possible'],
      ['usage', '3 prompt, 1 completion'],
      ['locked', '[\\d.]+ USD'],
      ['settled', '0.000004 USD'],
      ['charged', '0.000004 USD, of which the fee is [\\d.]+ USD'],
    ] as const)
      expect(shown.stdout).toMatch(new RegExp(`^${name} +${value}$`, 'm'));
    const refund = ['call', 'refund', succeeded.headers.get('x-generation-id')!, '--reason', 'it was wrong'];
    const refunded = await place.run([...refund, '--usd', '0.000003']);
    expect(refunded.stdout).toMatch(
      /refunded +0\.000003 USD\n[^]*reason +it was wrong\nfrom the operator +0\.000003 USD\n$/,
    );
    expect((await place.run([...refund, '--usd', '0.000004'])).output).toContain('already refunded, with 0.000003 USD');
    expect((await place.run([...refund, '--usd', 'x'])).output).toContain('--usd is an amount in USD above 0');
    expect((await place.run(['account', 'show', 'acme'])).stdout).toMatch(/^refunded +0\.000003 USD$/m);
    expect((await place.run(['analytics', 'rebuild'])).code).toBe(0);
    const used = await place.run(['usage', 'acme', '--group-by', 'month,model']);
    expect(used.stdout).toMatch(
      /^MONTH +MODEL +CALLS +FAILED +TOKENS IN +TOKENS OUT +USD\n\d{4}-\d\d +mine\/one +1 +1? *\d/,
    );
    const unknown = await place.run(['call', requestOf(succeeded)]);
    expect([unknown.code, unknown.output]).toEqual([1, expect.stringContaining('name the account that made it')]);

    const lines = gateway
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const calls = lines.filter(({ msg }) => msg === 'call');
    expect(calls).toMatchObject([
      { status: 500, error: 'provider_unavailable', lock: 'released', cost_micro_usd: 0 },
      {
        status: 200,
        account: 'tollgate:local:acme',
        service: 'mine/one',
        provider: 'Mine',
        usage: { prompt: 3, completion: 1 },
        cost_micro_usd: 4,
      },
    ]);
    expect(calls[1]).toMatchObject({ metadata: { team: 'blue' } });
    expect(lines.some(({ msg }) => msg === 'attempt failed')).toBe(true);
    // What a provider does wrong is no fault of the gateway's.
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);

    expect(metrics).toContain(
      'gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_request_model="mine/one",gen_ai_provider_name="Mine"} 1',
    );
    expect(metrics).toContain(
      'tollgate_charged_micro_usd_total{gen_ai_operation_name="chat",gen_ai_request_model="mine/one",gen_ai_provider_name="Mine"} 4',
    );
    expect(metrics).toContain('tollgate_locks_held 0');
    expect(metrics).toMatch(/tollgate_ledger_batch_size_count [1-9]/);
    expect(metrics).toContain(
      'tollgate_http_requests_total{method="POST",route="/api/v1/chat/completions",status="200"} 1',
    );

    expect(upstream.map(({ traceparent }) => traceparent)).toEqual(
      [0, 1].map(() => expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-(?!00f067aa0ba902b7)/)),
    );
    expect(traces.map((trace) => trace.split(' ', 1)[0])).toContain('/v1/traces');
    expect(traces.join()).toContain('"chat mine/one"');

    for (const [where, text] of Object.entries({ log: gateway.output(), metrics, traces: traces.join(), failure })) {
      expect(text, where).not.toContain(CANARY);
      expect(text, where).not.toContain(key);
    }
  } finally {
    for (const { server } of [provider, collector]) {
      server.closeAllConnections();
      server.close();
    }
  }
});
