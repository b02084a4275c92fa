// The CoreFoundation types that metal-cpp uses, for the cross build, which has no SDK.
#pragma once

typedef long CFIndex;
typedef double CFTimeInterval;
typedef unsigned long CFTypeID;
typedef const void* CFTypeRef;
typedef const struct OctavoCFString* CFStringRef;
