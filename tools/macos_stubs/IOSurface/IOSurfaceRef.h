// The one name of Apple's IOSurface that metal-cpp mentions. For the cross build, which has no SDK.
#pragma once

typedef struct OctavoIOSurface* IOSurfaceRef;
