export { chatRoutes, type ChatDeps } from './chat-routes.ts';
export { createModelSpeaker, type ModelSpeakerOptions } from './model-speaker.ts';
export { modelsRoutes, type ModelsDeps } from './models-routes.ts';
export type { ToolLoopDeps } from './tool-loop/open-tool-loop.ts';
