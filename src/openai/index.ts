export { chatRoutes, type ChatDeps } from './chat-routes.ts';
export { modelsRoutes, type ModelsDeps } from './models-routes.ts';
