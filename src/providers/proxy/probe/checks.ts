import {
  type ServiceConfig,
  type HttpTarget,
  type MediaFacts,
  type SdkTarget,
  type Service,
  findPackage,
  IMAGE_PATHS,
  VIDEO_API,
} from '#config';
import { oneLine } from '#security';
import type { ProviderConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/wallet.ts';
import { runCheck, type Check, type CheckResult, ask, jsonObject, mustSucceed, ProbeFailure } from './ask.ts';
import { modelChecks } from './model.ts';
import { routerChecks } from './router.ts';
import { toolCheck, type CommandRun } from './tool.ts';

export type { Check, CheckResult, CommandRun };

export function providerChecks(
  config: ProviderConfig,
  wallet: Wallet | null,
  run: CommandRun,
  now: () => number,
): readonly Check[] {
  return [...routerChecks(config.router, wallet, now), ...config.services.flatMap((each) => serviceChecks(each, run))];
}

export function serviceChecks({ service, target }: ServiceConfig, run: CommandRun): readonly Check[] {
  if (target.kind === 'sdk') return [packageCheck(service, target)];
  if (service.primitive === 'tool') return [toolCheck(service, target, run)];
  // Only tools can be commands.
  if (target.kind !== 'http') return [];
  switch (service.primitive) {
    case 'model':
      return modelChecks(service, target);
    case 'agent':
      return [agentCheck(service, target)];
    case 'image':
    case 'video':
      return mediaChecks(service, target);
  }
}

/** Checks that the package is installed. Whether it can call its model shows with the first call. */
const packageCheck = ({ primitive, name }: Service, target: SdkTarget): Check => ({
  kind: primitive,
  name,
  async run() {
    findPackage(target);
    return `the package ${target.sdk} is installed`;
  },
});

/**
 * Number of checks that run at once. One slow upstream doesn't delay the others, and a small upstream isn't overloaded.
 */
const AT_ONCE = 4;

/**
 * Runs all checks. Calls `report` with each result, in the order of the checks. Resolves with whether all of them
 * succeeded.
 */
export async function runChecks(
  checks: readonly Check[],
  now: () => number,
  report: (check: Check, result: CheckResult) => void,
): Promise<boolean> {
  const results: Promise<CheckResult>[] = [];
  let ok = true;
  for (const [index, check] of checks.entries()) {
    for (let next = results.length; next < Math.min(index + AT_ONCE, checks.length); next++)
      results.push(runCheck(checks[next]!, now));
    const result = await results[index]!;
    ok &&= result.ok;
    report(check, result);
  }
  return ok;
}

type AgentService = Extract<Service, { primitive: 'agent' }>;

/** Checks that an agent serves its card, in the form of either protocol version. */
function agentCheck(service: AgentService, target: HttpTarget): Check {
  return {
    kind: 'agent',
    name: service.name,
    async run() {
      const { cardPath, rpcPath } = service.agent;
      const card = await cardOf(target, cardPath);
      const { url, supportedInterfaces: interfaces, skills } = card;
      const bare = typeof url !== 'string' && !(Array.isArray(interfaces) && interfaces.length > 0);
      const count = Array.isArray(skills) ? skills.length : 0;
      const words = `the card of ${oneLine(String(card['name'])).slice(0, 60)}, ${count} ${count === 1 ? 'skill' : 'skills'}`;
      return bare ? `${words}; messages are posted to ${rpcPath ?? '/a2a'}, because the card has no address` : words;
    },
  };
}

const WELL_KNOWN = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

type AgentCardJson = Readonly<Record<string, unknown>>;

/**
 * Finds the card as the gateway does: at the path in the file, then at the well-known paths. Rejects with the error of
 * the first path. If the card is at the origin instead, as the protocol wants, the error says what to write.
 */
async function cardOf({ url, apiKey }: HttpTarget, cardPath: string): Promise<AgentCardJson> {
  const card = await firstCard(url, [...new Set([cardPath, ...WELL_KNOWN])], apiKey);
  if (!(card instanceof ProbeFailure)) return card;
  const { origin, pathname } = new URL(url);
  if (pathname === '/' || (await firstCard(origin, WELL_KNOWN, apiKey)) instanceof ProbeFailure) throw card;
  throw new ProbeFailure(
    `has no card below ${pathname}, but one at ${origin}. Write endpoint = "${origin}": the card has the path of the requests`,
  );
}

/** The first card at these paths, or the failure of the first path. */
async function firstCard(
  url: string,
  paths: readonly string[],
  apiKey: string | null,
): Promise<AgentCardJson | ProbeFailure> {
  let first: ProbeFailure | null = null;
  for (const path of paths) {
    try {
      const answer = await ask({ method: 'GET', url: url + path, apiKey, headers: { accept: 'application/json' } });
      mustSucceed(answer);
      const card = jsonObject(answer.text, 'the agent card');
      if (typeof card['name'] !== 'string' || card['name'] === '') throw new ProbeFailure('the agent card has no name');
      return card;
    } catch (error) {
      if (!(error instanceof ProbeFailure)) throw error;
      first ??= error;
    }
  }
  return first!;
}

type MediaService = Extract<Service, { primitive: 'image' | 'video' }>;

/**
 * Checks that the API of an image or video service exists and accepts the key, at each path that the gateway calls.
 * Generating would cost money, so each path gets an empty request, which the API refuses.
 */
function mediaChecks(service: MediaService, target: HttpTarget): readonly Check[] {
  const { primitive, name } = service;
  const media: MediaFacts = service.media;
  const { wire = 'openai', edits = false } = media.imageApi ?? {};
  const { make, edit } = primitive === 'video' ? { make: VIDEO_API.path, edit: '' } : IMAGE_PATHS[wire];
  return [
    {
      kind: primitive,
      name,
      async run() {
        const { status } = await ask({ method: 'GET', url: `${target.url}/models`, apiKey: target.apiKey });
        mustTakeKey(status);
        if (status >= 500) throw new ProbeFailure(`answers with status ${status}`);
        const text = await mustHave(target, make, 'generated');
        return status < 400
          ? `answers, and accepts the key; ${text}`
          : `is reached; it has no list of models to try the key with (status ${status}); ${text}`;
      },
    },
    ...(edits
      ? [
          {
            kind: primitive,
            name: `${name}, edits`,
            run: () => mustHave(target, edit, 'edited'),
          },
        ]
      : []),
  ];
}

function mustTakeKey(status: number): void {
  if (status === 401 || status === 403) throw new ProbeFailure(`does not accept the key: status ${status}`);
}

/** Describes the answer to an empty request. `done` is the work that was not done, such as `generated`. */
async function mustHave({ url, apiKey }: HttpTarget, path: string, done: string): Promise<string> {
  const { status } = await ask({ method: 'POST', url: url + path, apiKey, body: {} });
  mustTakeKey(status);
  if (status === 404 || status === 405)
    throw new ProbeFailure(`has no POST ${path} (status ${status}). Check params.api_base`);
  if (status >= 200 && status < 300)
    return `it has ${path}; it took an empty request (status ${status}) and may have charged for it`;
  if (status < 400)
    throw new ProbeFailure(`answers an empty POST ${path} with status ${status}; right is a refusal such as 400`);
  // Some APIs fail on an empty request but answer real ones.
  if (status >= 500) return `it has ${path}; it answers an empty request with status ${status}`;
  return `it has ${path}; nothing was ${done}`;
}
