import type { ReactNode } from 'react';
import { Heading } from '../../ui/heading.tsx';

export default function PlaygroundPage(): ReactNode {
  return <Heading title="Playground" lead="Try a service." />;
}
