import type { FastifyPluginAsync } from 'fastify';
import { queueRoutes, type QueueDeps } from './http/queue-routes.ts';
import { taskRoutes, type TaskRoutesDeps } from './http/task-routes.ts';

/** All routes of videos. Register it under `/api/v1`. */
export function videoRoutes(deps: QueueDeps & TaskRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    await app.register(queueRoutes(deps));
    await app.register(taskRoutes(deps));
  };
}
