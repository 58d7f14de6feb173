import { quotableTargets } from '#bridge';
import { giveFile } from '#files';
import { type Mcp, oldTransport } from '#mcp';
import { quotableImages, quotableVideos } from '#media';
import { quotableModel } from '#openai';
import { quoteRoutes } from '#pages';
import { rpcRoutes } from '#rpc';
import { createEndCall, type EndCall } from '#tasks';
import { VERSION } from '../../foundation/version.ts';
import { type A2aParts, openA2a } from './a2a.ts';
import type { Phases } from './calls.ts';
import { type LargeFiles, openFiles } from './files.ts';
import { mountMcp, openMcp } from './mcp.ts';
import { mountImages, mountVideos, openMedia } from './media.ts';
import { API, mount } from './mount.ts';
import { mountBatches, mountOpenai, type OpenaiParts, openOpenai } from './openai.ts';
import { type RouteParts, shareParts } from './route-parts.ts';
import { openWork, watchTasks, type Work } from './work.ts';

/** Phase 7: the routes of all protocols, and the work that outlives its calls. */
export interface Protocols {
  readonly work: Work;
  readonly files: LargeFiles;
  readonly mcp: Mcp;
  readonly agents: A2aParts;
  readonly openai: OpenaiParts;
  readonly endCall: EndCall;
}

/** Any primitive can be called through any route, because each route gets the target adapters of all protocols. */
export async function openProtocols(phases: Phases): Promise<Protocols> {
  const { access, network, calls } = phases;
  const work = openWork(phases, async (task) => {
    if (task.primitive === 'video') await media.videos.gaveUp(task);
  });
  const files = await openFiles(phases);
  const media = openMedia(phases, work, files);
  const { videos } = media;
  const parts = shareParts(phases, work, files);
  const mcp = openMcp(phases, parts);
  const openai = await openOpenai(phases, parts, mcp.toolsOf);
  await mountOpenai(phases, openai);
  await mountImages(phases, parts, media);
  await mountQuotes(phases, parts);
  await mountVideos(phases, parts, media);
  await mountBatches(phases, openai);
  const { server } = access.http;
  await mount(server, { oauth: access.oauth.routes, oldTransport });
  await mount(server, { oldTransport }, API);
  await mountMcp(server, mcp);
  const agents = await openA2a(phases, parts);
  const { a2a } = agents;
  await mountRpc(phases);
  const polls = { agent: a2a.poll, tool: mcp.pollTask, video: videos.poll };
  watchTasks(phases, work, polls, { video: videos.pollAtExpiry });
  const endCall = createEndCall({
    running: calls.runningCalls,
    batches: openai.batches.batches,
    ledger: phases.money.ledger,
    tasks: work.tasks,
    endTasks: { agent: a2a.endTask, tool: mcp.endTask, video: videos.end },
    registry: network.registry,
    peers: network.cluster.peers,
    logger: phases.foundation.logger,
  });
  network.cluster.listener?.share({
    tunnels: network.tunnels,
    giveFile: (stream, fileRequest) => void giveFile(files.stores, stream, fileRequest),
    endCall: endCall.here,
  });
  openai.batches.start();
  return { work, files, mcp, agents, openai, endCall };
}

async function mountQuotes({ foundation, access, calls }: Phases, { targets, quote }: RouteParts): Promise<void> {
  const { config, now } = foundation;
  const { tool, agent } = quotableTargets(targets.all);
  const quotables = {
    model: quotableModel({ config, catalog: access.http.catalog, now }),
    image: quotableImages(config),
    video: quotableVideos(config),
    tool,
    agent,
  };
  await mount(access.http.server, { quotes: quoteRoutes({ admit: calls.pipeline.admit, quotables, quote }) }, API);
}

async function mountRpc({ foundation, access, calls }: Phases): Promise<void> {
  const { config, onError } = foundation;
  const { server } = access.http;
  const inject = server.inject.bind(server);
  const hasRoute: typeof server.hasRoute = (route) => server.hasRoute(route);
  const rpc = rpcRoutes({ inject, hasRoute, pipeline: calls.pipeline, config, version: VERSION, onError });
  await mount(server, { rpc }, API);
}
