// The IOSurface type that metal-cpp uses, for the cross build, which has no SDK.
#pragma once

typedef struct OctavoIOSurface* IOSurfaceRef;
